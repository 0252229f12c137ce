// A canvas that shows a plane of the field at any magnification: coarse at first, then finer.
//
// A view is the point in the middle of the canvas and the scale, in pixels of the screen for each pixel of the signal.
// The space has the size [height, width] in pixels of the signal, which lie at origin + x · across + y · down.

import { Surface } from "./surface.js";

const STEPS = [16, 4, 1];
const MOST_TIMES = { WebGL2: 3, "typed arrays": 2 };
const LARGEST_SCALE = 2 ** 40;

export class Picture extends Surface {
  constructor(canvas, pool, space, paint) {
    super(canvas, pool);
    Object.assign(this, { space, paint, quantity: "value", left: [0, 0] });
    this.context = canvas.getContext("2d", { willReadFrequently: true });
    this.scratch = document.createElement("canvas");
    this.view = { x: space.size[1] / 2, y: space.size[0] / 2, scale: 1 };
    this.forget();
  }

  // Show all of it.
  fit() {
    const [height, width] = this.space.size;
    this.look({ x: width / 2, y: height / 2, scale: this.fittingScale() });
    this.whole = true;
  }

  fittingScale() {
    const [height, width] = this.space.size;
    return Math.min(this.canvas.width / width, this.canvas.height / height);
  }

  look({ x, y, scale }) {
    const [height, width] = this.space.size;
    scale = Math.min(LARGEST_SCALE, Math.max(Math.min(1, this.fittingScale()) / 2, scale));
    x = snap(Math.min(width, Math.max(0, x)), scale, this.canvas.width);
    y = snap(Math.min(height, Math.max(0, y)), scale, this.canvas.height);
    this.view = { x, y, scale };
    this.whole = false;
    this.schedule();
  }

  // By whole pixels, so that what is drawn can be taken along; what is left counts for the next move.
  pan(dx, dy) {
    const { x, y, scale } = this.view;
    const [wholeX, wholeY] = [Math.round(dx + this.left[0]), Math.round(dy + this.left[1])];
    this.left = [dx + this.left[0] - wholeX, dy + this.left[1] - wholeY];
    if (wholeX !== 0 || wholeY !== 0) this.look({ x: x - wholeX / scale, y: y - wholeY / scale, scale });
  }

  // Magnify, and keep what is at the place (px, py) of the canvas there.
  zoom(factor, px, py) {
    const { canvas, view } = this;
    const scale = Math.min(LARGEST_SCALE, view.scale * factor);
    const shift = (at, size) => (at - size / 2) * (1 / view.scale - 1 / scale);
    this.look({ x: view.x + shift(px, canvas.width), y: view.y + shift(py, canvas.height), scale });
  }

  change(changes) {
    Object.assign(this, changes);
    this.known = null;
    this.schedule();
  }

  // What is on the canvas is no longer right anywhere.
  forget() {
    this.known = null;
    this.drawn = null;
  }

  refine(levels = this.levels()) {
    return this.work(async (signal) => {
      const known = this.moveContent();
      for (const level of levels) {
        const tiles = this.tiles(level).filter((tile) => !(known && inside(tile, known) && level.step >= known.step));
        await Promise.all(tiles.map((tile) => this.renderTile(tile, level, signal)));
        const [x, y, right, bottom] = this.visible();
        this.known = { x, y, width: right - x, height: bottom - y, step: level.step };
        this.canvas.dataset.step = level.step;
      }
    });
  }

  // Where pixels of the signal are smaller than those of the screen, the mean of several samples avoids false patterns.
  levels() {
    const levels = STEPS.map((step) => ({ step, times: 1 }));
    const times = Math.min(MOST_TIMES[this.pool.engine], Math.ceil(1 / this.view.scale - 0.2));
    return times > 1 ? [...levels, { step: 0.5, times }] : levels;
  }

  // Take what was drawn for the last view along to this one, and say where it is and how fine.
  moveContent() {
    const { canvas, context, scratch, view, drawn, known } = this;
    this.drawn = { ...view };
    this.known = null;
    if (drawn === null) {
      context.clearRect(0, 0, canvas.width, canvas.height);
      return null;
    }
    const ratio = view.scale / drawn.scale;
    const x = (drawn.x - view.x) * view.scale + (canvas.width / 2) * (1 - ratio);
    const y = (drawn.y - view.y) * view.scale + (canvas.height / 2) * (1 - ratio);
    const exact = ratio === 1 && Math.abs(x - Math.round(x)) + Math.abs(y - Math.round(y)) < 1e-3;
    if (!exact || Math.round(x) !== 0 || Math.round(y) !== 0) {
      Object.assign(scratch, { width: canvas.width, height: canvas.height });
      scratch.getContext("2d").drawImage(canvas, 0, 0);
      context.clearRect(0, 0, canvas.width, canvas.height);
      if (exact) context.drawImage(scratch, Math.round(x), Math.round(y));
      else context.drawImage(scratch, x, y, canvas.width * ratio, canvas.height * ratio);
    }
    if (known === null) return null;
    const step = exact ? known.step : Math.max(1.01, known.step * Math.max(1, ratio));
    const [width, height] = [known.width * ratio, known.height * ratio];
    return { x: x + known.x * ratio, y: y + known.y * ratio, width, height, step };
  }

  // The part of the canvas that shows the signal: left, top, right, bottom.
  visible() {
    const { canvas, view } = this;
    const [height, width] = this.space.size;
    const left = canvas.width / 2 - view.x * view.scale;
    const top = canvas.height / 2 - view.y * view.scale;
    const cut = (at, size) => Math.min(size, Math.max(0, Math.round(at)));
    return [
      cut(left, canvas.width),
      cut(top, canvas.height),
      cut(left + width * view.scale, canvas.width),
      cut(top + height * view.scale, canvas.height),
    ];
  }

  // Tiles of as many samples as an engine takes at once, from the middle outwards.
  tiles({ step, times }) {
    const [left, top, right, bottom] = this.visible();
    const samples = Math.floor(Math.sqrt(this.pool.capacity) / times);
    const side = Math.max(1, samples) * Math.max(1, step);
    const tiles = [];
    for (let y = top; y < bottom; y += side) {
      for (let x = left; x < right; x += side) {
        tiles.push({ x, y, width: Math.min(side, right - x), height: Math.min(side, bottom - y) });
      }
    }
    const distance = (tile) =>
      Math.hypot(tile.x + tile.width / 2 - this.canvas.width / 2, tile.y + tile.height / 2 - this.canvas.height / 2);
    return tiles.sort((a, b) => distance(a) - distance(b));
  }

  async renderTile(tile, { step, times }, signal) {
    const spacing = times > 1 ? 1 / times : step;
    const columns = Math.ceil(tile.width / spacing);
    const rows = Math.ceil(tile.height / spacing);
    const result = await this.pool.evaluate(this.plane(tile.x, tile.y, spacing, columns, rows), this.quantity, signal);
    const { values, channels } = times > 1 ? averaged(result, columns, times) : result;
    const bytes = this.paint({ values, channels });
    const picture = new ImageData(bytes, columns / times, rows / times);
    if (spacing <= 1) this.context.putImageData(picture, tile.x, tile.y);
    else this.drawLarge(picture, tile, spacing);
  }

  drawLarge(picture, tile, spacing) {
    const { context, scratch } = this;
    Object.assign(scratch, { width: picture.width, height: picture.height });
    scratch.getContext("2d").putImageData(picture, 0, 0);
    const [width, height] = [tile.width / spacing, tile.height / spacing];
    context.drawImage(scratch, 0, 0, width, height, tile.x, tile.y, tile.width, tile.height);
  }

  // Samples in the middle of cells of this spacing, from a corner on the canvas.
  plane(px, py, spacing, columns, rows) {
    const { canvas, view, space } = this;
    const x = view.x + (px + spacing / 2 - canvas.width / 2) / view.scale;
    const y = view.y + (py + spacing / 2 - canvas.height / 2) / view.scale;
    const across = space.across.map((u) => (u * spacing) / view.scale);
    const down = space.down.map((u) => (u * spacing) / view.scale);
    return { origin: this.position(x, y), across, down, columns, rows };
  }

  position(x, y) {
    const { origin, across, down } = this.space;
    return origin.map((o, k) => o + x * across[k] + y * down[k]);
  }

  // The point of the signal at a place on the canvas, in its pixels.
  point(px, py) {
    const { canvas, view } = this;
    return [view.x + (px - canvas.width / 2) / view.scale, view.y + (py - canvas.height / 2) / view.scale];
  }
}

// Move a view by less than a pixel, so that pixels of the signal begin at pixels of the screen.
function snap(at, scale, size) {
  return scale > 64 ? at : (size / 2 - Math.round(size / 2 - at * scale)) / scale;
}

function inside(tile, area) {
  const slack = 0.01;
  return (
    tile.x >= area.x - slack &&
    tile.y >= area.y - slack &&
    tile.x + tile.width <= area.x + area.width + slack &&
    tile.y + tile.height <= area.y + area.height + slack
  );
}

// The means of blocks of times × times samples.
function averaged({ values, channels }, columns, times) {
  const width = columns / times;
  const means = new Float32Array(values.length / times ** 2);
  for (let k = 0; k < values.length; k++) {
    const sample = Math.floor(k / channels);
    const x = Math.floor((sample % columns) / times);
    const y = Math.floor(sample / columns / times);
    means[(y * width + x) * channels + (k % channels)] += values[k] / times ** 2;
  }
  return { values: means, channels };
}
