// Videos and volumes: a picture of one frame or slice, a slider through them, and play.

import { barColors, imageColors } from "./colors.js";
import { button, choice, colorBar, element, number, slider } from "./elements.js";
import { axisCells, planeSpace } from "./fields.js";
import { pictureButtons, watch } from "./flat.js";
import { Picture } from "./picture.js";

const SLICES_PER_SECOND = 12;
const SPEEDS = { 0.1: "a tenth of the speed", 0.25: "¼ speed", 0.5: "½ speed", 1: "normal speed", 2: "double speed" };

export function showSlices({ header, pool, stage, toolbar, status }) {
  const slices = new Slices(header, pool, stage.querySelector("canvas"));
  const play = button("Play", "Play or stop (space)", () => slices.toggle());
  const speeds = choice("At", SPEEDS, (speed) => (slices.speed = Number(speed)));
  speeds.select.value = "1";
  const label = element("output", { class: "number" });
  const name = header.rate ? "Frame" : "Slice";
  const bar = slider(name, { min: 0, max: slices.cells.count, step: "any", value: slices.at }, (at) => slices.go(at));
  stage.after(element("div", { class: "timeline" }, play, bar, label));
  toolbar.append(pictureButtons(slices.picture, header.domain.shape !== null), speeds.label);
  if (!header.medium) stage.after(colorBar(header.value_range));
  if (!header.rate) toolbar.append(axisChoice(slices, bar));
  slices.tell = (playing) => {
    play.textContent = playing ? "Stop" : "Play";
    bar.value = slices.at;
    const seconds = header.rate ? `${(slices.at / header.rate).toFixed(2)} s` : `at ${number(slices.coordinate())}`;
    label.textContent = `${name.toLowerCase()} ${Math.min(slices.cells.count, Math.floor(slices.at) + 1)}, ${seconds}`;
  };
  const step = (change) => () => slices.go(Math.min(slices.cells.count - 0.5, Math.max(0.5, slices.at + change)));
  watch(slices.picture, header, status, { " ": () => slices.toggle(), ",": step(-1), ".": step(1) });
  slices.tell(false);
  slices.picture.resize();
}

class Slices {
  constructor(header, pool, canvas) {
    Object.assign(this, { header, axis: 0, speed: 1, playing: false });
    this.cells = axisCells(header.domain, 0);
    this.at = this.middle();
    const { medium, value_range: range } = header;
    const paint = medium ? imageColors(medium, range) : barColors(0, range);
    this.picture = new Picture(canvas, pool, this.space(), paint);
  }

  // In the middle of the first frame of a video, or of a volume.
  middle() {
    return this.header.rate ? 0.5 : Math.floor(this.cells.count / 2) + 0.5;
  }

  coordinate() {
    return this.cells.start + this.at * this.cells.spacing;
  }

  space() {
    const [rows, columns] = [0, 1, 2].filter((axis) => axis !== this.axis);
    const at = { [this.axis]: this.coordinate() };
    return planeSpace(this.header.domain, rows, columns, { physical: !this.header.rate, at });
  }

  setAxis(axis) {
    this.axis = axis;
    this.cells = axisCells(this.header.domain, axis);
    this.at = this.middle();
    this.picture.change({ space: this.space() });
    this.picture.forget();
    this.picture.fit();
    this.tell(this.playing);
  }

  go(at) {
    this.at = at;
    this.picture.change({ space: this.space() });
    this.tell(this.playing);
  }

  toggle() {
    this.playing = !this.playing;
    this.tell(this.playing);
    if (this.playing) this.play();
    else this.picture.change({});
  }

  // One frame after the other, each at the time at which it is drawn, and as fine as there is time for.
  async play() {
    let last = performance.now();
    while (this.playing) {
      const now = await new Promise(requestAnimationFrame);
      const rate = this.header.rate ?? SLICES_PER_SECOND;
      this.at = (this.at + (Math.max(0, now - last) / 1000) * rate * this.speed) % this.cells.count;
      last = now;
      this.picture.space = this.space();
      this.picture.known = null;
      this.tell(true);
      await this.picture.refine([{ step: this.affordableStep(), times: 1 }]);
    }
  }

  affordableStep() {
    const [left, top, right, bottom] = this.picture.visible();
    const affordable = Math.max(64, this.picture.pool.samplesPerSecond / SLICES_PER_SECOND);
    const step = Math.sqrt(((right - left) * (bottom - top)) / affordable);
    return Math.min(32, Math.max(1, Math.ceil(step)));
  }
}

function axisChoice(slices, bar) {
  const names = { 0: "first axis", 1: "second axis", 2: "third axis" };
  return choice("Through the", names, (axis) => {
    slices.setAxis(Number(axis));
    bar.max = slices.cells.count;
    bar.value = slices.at;
  }).label;
}
