// The pixels of the signal's own resolution over the picture of the network, left of a line that a slider moves.

import { slider } from "./elements.js";

// More pixels than this are not shown: there the screen has fewer, and there is nothing to see.
const MOST_PIXELS = 1 << 21;
const MARGIN = 2;

export class Comparison {
  // `original` has the bytes of the signal, if the page has them. Otherwise pixels are what the network gives for them.
  constructor(picture, stage, original) {
    Object.assign(this, { picture, original, mode: "off", block: null });
    this.canvas = document.createElement("canvas");
    this.canvas.className = "overlay";
    this.line = document.createElement("div");
    this.line.className = "line";
    const range = { min: 0, max: 100, step: 0.5, value: 50 };
    this.slider = slider("Where the pixels end and the network begins", range, () => this.split());
    this.slider.className = "split";
    stage.append(this.canvas, this.line, this.slider);
    this.choose("off");
    picture.listen((event) => event !== "busy" && this.draw(event === "ready"));
  }

  choose(mode) {
    this.mode = mode;
    for (const part of [this.canvas, this.line, this.slider]) part.hidden = mode === "off";
    this.split();
    this.draw(true);
  }

  split() {
    const percent = this.slider.value;
    this.canvas.style.clipPath = `inset(0 ${100 - percent}% 0 0)`;
    this.line.style.left = `${percent}%`;
  }

  async draw(fetch) {
    if (this.mode === "off") return;
    const { picture, canvas } = this;
    if (canvas.width !== picture.canvas.width || canvas.height !== picture.canvas.height) {
      Object.assign(canvas, { width: picture.canvas.width, height: picture.canvas.height });
    }
    if (fetch) await this.fetch();
    canvas.dataset.state = this.block && this.covers(this.range()) ? "ready" : "busy";
    const context = canvas.getContext("2d");
    context.clearRect(0, 0, canvas.width, canvas.height);
    if (this.block === null) return;
    if (this.mode === "nearest") this.drawNearest(context);
    else this.drawBicubic(context);
  }

  // The pixels that are in view, with a margin: left, top, right, bottom.
  range() {
    const { picture } = this;
    const [height, width] = picture.space.size;
    const [left, top] = picture.point(0, 0);
    const [right, bottom] = picture.point(picture.canvas.width, picture.canvas.height);
    const cut = (at, size) => Math.min(size, Math.max(0, at));
    return [
      cut(Math.floor(left) - MARGIN, width),
      cut(Math.floor(top) - MARGIN, height),
      cut(Math.ceil(right) + MARGIN, width),
      cut(Math.ceil(bottom) + MARGIN, height),
    ];
  }

  covers([left, top, right, bottom]) {
    const { block } = this;
    const [end, floor] = [block.left + block.width, block.top + block.height];
    return left >= block.left && top >= block.top && right <= end && bottom <= floor;
  }

  // Make the block of pixels that are in view.
  async fetch() {
    const range = this.range();
    const [left, top, right, bottom] = range;
    const [width, height] = [right - left, bottom - top];
    if (this.block && this.covers(range)) return;
    if (width < 1 || height < 1 || width * height > MOST_PIXELS) {
      this.block = null;
      return;
    }
    const place = [left, top, width, height];
    const bytes = this.original ? cropped(this.original, ...place) : await this.sampled(...place);
    if (bytes) this.block = { left, top, width, height, bytes, canvas: asCanvas(bytes, width, height) };
  }

  // What the network gives for each pixel: the value in its middle.
  async sampled(left, top, width, height) {
    const { picture } = this;
    const { signal } = picture.stop;
    const { across, down } = picture.space;
    const rows = Math.max(1, Math.floor(picture.pool.capacity / width));
    const columns = Math.min(width, picture.pool.capacity);
    const bytes = new Uint8ClampedArray(4 * width * height);
    const evaluate = async (x, y) => {
      const [w, h] = [Math.min(columns, width - x), Math.min(rows, height - y)];
      const plane = { origin: picture.position(left + x + 0.5, top + y + 0.5), across, down, columns: w, rows: h };
      const part = picture.paint(await picture.pool.evaluate(plane, picture.quantity, signal));
      for (let j = 0; j < h; j++) bytes.set(part.subarray(4 * j * w, 4 * (j + 1) * w), 4 * ((y + j) * width + x));
    };
    const parts = [];
    for (let y = 0; y < height; y += rows) for (let x = 0; x < width; x += columns) parts.push(evaluate(x, y));
    try {
      await Promise.all(parts);
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
    return bytes;
  }

  drawNearest(context) {
    const { block, picture } = this;
    const { canvas, view } = picture;
    context.imageSmoothingEnabled = false;
    const x = (block.left - view.x) * view.scale + canvas.width / 2;
    const y = (block.top - view.y) * view.scale + canvas.height / 2;
    context.drawImage(block.canvas, x, y, block.width * view.scale, block.height * view.scale);
  }

  drawBicubic(context) {
    const [left, top, right, bottom] = this.picture.visible();
    if (right <= left || bottom <= top) return;
    const bytes = bicubic(this.block, right - left, bottom - top, (px, py) => this.picture.point(left + px, top + py));
    context.putImageData(new ImageData(bytes, right - left, bottom - top), left, top);
  }
}

function cropped({ data, width: all }, left, top, width, height) {
  const bytes = new Uint8ClampedArray(4 * width * height);
  for (let j = 0; j < height; j++) {
    const from = 4 * ((top + j) * all + left);
    bytes.set(data.subarray(from, from + 4 * width), 4 * j * width);
  }
  return bytes;
}

function asCanvas(bytes, width, height) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height });
  canvas.getContext("2d").putImageData(new ImageData(bytes, width, height), 0, 0);
  return canvas;
}

// Catmull and Rom's cubic: first along every row of pixels, then down the columns of the screen.
function bicubic({ left, top, width, height, bytes }, columns, rows, point) {
  const across = weights(columns, (px) => point(px + 0.5, 0)[0] - left, width);
  const down = weights(rows, (py) => point(0, py + 0.5)[1] - top, height);
  const wide = new Float32Array(4 * columns * height);
  for (let y = 0; y < height; y++) {
    for (let px = 0; px < columns; px++) mix(bytes, wide, across, px, 1, y * width, y * columns + px);
  }
  const result = new Uint8ClampedArray(4 * columns * rows);
  for (let py = 0; py < rows; py++) {
    for (let px = 0; px < columns; px++) mix(wide, result, down, py, columns, px, py * columns + px);
  }
  return result;
}

// The sum of four pixels of a line, which has a first pixel and a stride, by their weights.
function mix(source, target, { index, weight }, place, stride, first, at) {
  for (let c = 0; c < 4; c++) {
    let sum = 0;
    for (let n = 4 * place; n < 4 * place + 4; n++) sum += weight[n] * source[4 * (first + index[n] * stride) + c];
    target[4 * at + c] = sum;
  }
}

// For every place, four pixels around it and their weights.
function weights(places, position, size) {
  const index = new Int32Array(4 * places);
  const weight = new Float64Array(4 * places);
  for (let k = 0; k < places; k++) {
    const at = position(k) - 0.5;
    const base = Math.floor(at);
    const t = at - base;
    const w = [
      ((-t + 2) * t - 1) * t / 2,
      ((3 * t - 5) * t * t + 2) / 2,
      ((-3 * t + 4) * t + 1) * t / 2,
      ((t - 1) * t * t) / 2,
    ];
    for (let n = 0; n < 4; n++) {
      index[4 * k + n] = Math.min(size - 1, Math.max(0, base + n - 1));
      weight[4 * k + n] = w[n];
    }
  }
  return { index, weight };
}
