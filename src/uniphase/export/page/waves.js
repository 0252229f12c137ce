// A field of one coordinate as a curve with a lane for each channel, to zoom into.
//
// A view is the place in the middle, counted in samples of the signal, and the scale in pixels for each sample.

import { number } from "./elements.js";
import { Surface } from "./surface.js";

const FINENESS = [1, 4, 16];
const GUTTER = 22;
const CHUNK = 128;

export class Waves extends Surface {
  // `cells` are those of the axis, and `label` turns a place, in samples, into a number for the axis.
  constructor(canvas, pool, cells, channels, range, label) {
    super(canvas, pool);
    Object.assign(this, { cells, channels, range, label });
    this.context = canvas.getContext("2d");
    this.view = { at: cells.count / 2, scale: 1 };
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.schedule());
  }

  forget() {} // every step draws all of it

  fit() {
    this.look({ at: this.cells.count / 2, scale: this.canvas.width / this.cells.count });
    this.whole = true;
  }

  look({ at, scale }) {
    scale = Math.min(2 ** 30, Math.max(this.canvas.width / this.cells.count, scale));
    const half = this.canvas.width / 2 / scale;
    this.view = { at: Math.min(this.cells.count - half, Math.max(half, at)), scale };
    this.whole = false;
    this.schedule();
  }

  pan(dx) {
    this.look({ at: this.view.at - dx / this.view.scale, scale: this.view.scale });
  }

  zoom(factor, px) {
    const { at, scale } = this.view;
    const shift = (px - this.canvas.width / 2) * (1 / scale - 1 / (scale * factor));
    this.look({ at: at + shift, scale: scale * factor });
  }

  refine() {
    return this.work(async (signal) => {
      for (const times of this.view.scale >= 1 ? [1] : FINENESS) {
        const count = this.canvas.width * times;
        const first = this.view.at - this.canvas.width / 2 / this.view.scale;
        this.draw(await this.sample(first, 1 / (times * this.view.scale), count, signal), times);
      }
    });
  }

  // Values in the middle of `count` steps, from a place on.
  async sample(first, step, count, signal) {
    const { cells, channels, pool } = this;
    const values = new Float32Array(count * channels);
    const most = Math.floor(pool.capacity / CHUNK) * CHUNK;
    const parts = [];
    for (let from = 0; from < count; from += most) {
      const length = Math.min(most, count - from);
      const plane = line(cells.start + (first + (from + 0.5) * step) * cells.spacing, step * cells.spacing, length);
      const put = (result) => values.set(result.values.subarray(0, length * channels), from * channels);
      parts.push(pool.evaluate(plane, "value", signal).then(put));
    }
    await Promise.all(parts);
    return values;
  }

  draw(values, times) {
    const { canvas, context, channels } = this;
    const style = getComputedStyle(canvas);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const gutter = GUTTER * this.ratio;
    const height = (canvas.height - gutter) / channels;
    for (let lane = 0; lane < channels; lane++) {
      const place = this.lane(lane, height);
      context.strokeStyle = style.getPropertyValue("--faint");
      context.lineWidth = 1;
      strokeLine(context, 0, place(Math.min(this.range[1], Math.max(this.range[0], 0))), canvas.width);
      context.strokeStyle = style.getPropertyValue("--accent");
      context.lineWidth = 1.5 * this.ratio;
      this.trace(values, times, lane, place);
    }
    context.fillStyle = style.getPropertyValue("--quiet");
    context.font = `${12 * this.ratio}px ${style.fontFamily}`;
    context.textBaseline = "middle";
    this.drawTicks(gutter);
    this.drawRange(height);
  }

  // The values at the upper and lower end of each lane.
  drawRange(height) {
    for (let lane = 0; lane < this.channels; lane++) {
      for (const x of this.range) this.context.fillText(number(x), 4 * this.ratio, this.lane(lane, height)(x));
    }
  }

  lane(lane, height) {
    const [low, high] = this.range;
    const margin = 0.06 * height;
    return (x) => lane * height + margin + ((high - x) / (high - low || 1)) * (height - 2 * margin);
  }

  // The lowest and highest value in each column of pixels, joined to one line.
  trace(values, times, lane, place) {
    const { context, canvas, channels } = this;
    context.beginPath();
    for (let px = 0; px < canvas.width; px++) {
      let low = Infinity;
      let high = -Infinity;
      for (let n = px * times; n < (px + 1) * times; n++) {
        const x = values[n * channels + lane];
        low = Math.min(low, x);
        high = Math.max(high, x);
      }
      context.lineTo(px + 0.5, place(low));
      if (high > low) context.lineTo(px + 0.5, place(high));
    }
    context.stroke();
  }

  drawTicks(gutter) {
    const { canvas, context, view, label } = this;
    const wanted = Math.max(2, Math.floor(canvas.width / (110 * this.ratio)));
    const [low, high] = [0, canvas.width].map((px) => label(view.at + (px - canvas.width / 2) / view.scale));
    const step = roundStep((high - low) / wanted);
    for (let k = Math.ceil(low / step); k * step < high; k++) {
      const px = ((k * step - low) / (high - low)) * canvas.width;
      const text = number(k * step, step);
      context.fillRect(px, canvas.height - gutter, 1, 4 * this.ratio);
      const half = context.measureText(text).width / 2;
      const left = Math.min(canvas.width - 2 * half, Math.max(0, px - half));
      context.fillText(text, left, canvas.height - gutter / 2 + 2 * this.ratio);
    }
  }
}

// Samples along a line as a plane of short rows: near the middle of a plane, float32 has more digits for the phases.
export function line(start, step, count) {
  const columns = Math.min(CHUNK, count);
  return { origin: [start], across: [step], down: [step * columns], columns, rows: Math.ceil(count / columns) };
}

function strokeLine(context, x, y, right) {
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(right, y);
  context.stroke();
}

// 1, 2 or 5 times a power of ten.
function roundStep(x) {
  const power = 10 ** Math.floor(Math.log10(x));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= x * 0.999);
}
