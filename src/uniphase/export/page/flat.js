// Images and maps: a picture to zoom into, its derivatives, a comparison with its own pixels, and a colour bar.

import { barColors, derivativeColors, imageColors, nearlyLargest } from "./colors.js";
import { Comparison } from "./comparison.js";
import { choice, colorBar, number, zoomButtons } from "./elements.js";
import { mapSpace } from "./fields.js";
import { listen, placeOf } from "./gestures.js";
import { Picture } from "./picture.js";

// Samples along each side from which the largest derivative is taken.
const SURVEY = 32;
const QUANTITIES = { value: "Values", gradient: "Gradient", laplacian: "Laplacian" };

export function showFlat({ header, pool, stage, toolbar, status, original }) {
  const canvas = stage.querySelector("canvas");
  const space = mapSpace(header.domain);
  const looks = new Looks(header, pool, space);
  const picture = new Picture(canvas, pool, space, looks.paint("value"));
  const quantities = choice("Show", QUANTITIES, async (quantity) => {
    picture.tell("busy");
    await looks.survey(quantity);
    if (quantities.select.value !== quantity) return; // another choice came in between
    picture.change({ quantity, paint: looks.paint(quantity) });
    if (looks.bar) looks.bar.hidden = quantity !== "value";
  });
  toolbar.append(pictureButtons(picture, header.domain.shape !== null), quantities.label);
  if (looks.bar) stage.after(looks.bar);
  if (looks.channels) toolbar.append(looks.channels((paint) => picture.change({ paint })));
  const show = (quantity) => {
    quantities.select.value = quantity;
    quantities.select.dispatchEvent(new Event("change"));
  };
  const keys = { v: () => show("value"), g: () => show("gradient"), l: () => show("laplacian") };
  if (looks.isImage) keys.c = addComparison(picture, stage, toolbar, original, quantities.select);
  watch(picture, header, status, keys);
  picture.resize();
}

// Colours for the values and their derivatives, and for a map the bar that explains them.
class Looks {
  constructor(header, pool, space) {
    Object.assign(this, { header, pool, space, channel: 0, largest: {}, current: "value" });
    this.isImage = header.medium !== null && header.domain.shape !== null;
    if (!this.isImage) this.bar = colorBar(header.value_range);
    const count = header.blueprint.layers.at(-1).rows;
    if (!this.isImage && count > 1) this.channels = (change) => this.channelChoice(count, change);
  }

  paint(quantity) {
    this.current = quantity;
    const channel = this.isImage ? null : this.channel;
    if (quantity !== "value") return derivativeColors(quantity, this.largest[quantity], channel);
    const { medium, value_range: range } = this.header;
    return this.isImage ? imageColors(medium, range) : barColors(channel, range);
  }

  // White in a derivative is the same at any zoom: nearly the largest in the whole picture.
  async survey(quantity) {
    if (quantity === "value" || this.largest[quantity]) return;
    const [height, width] = this.space.size;
    const { origin, across, down } = this.space;
    const plane = {
      origin: origin.map((o, k) => o + (across[k] * width + down[k] * height) / SURVEY / 2),
      across: across.map((u) => (u * width) / SURVEY),
      down: down.map((u) => (u * height) / SURVEY),
      columns: SURVEY,
      rows: SURVEY,
    };
    this.largest[quantity] = nearlyLargest(await this.pool.evaluate(plane, quantity));
  }

  channelChoice(count, change) {
    const names = Object.fromEntries(Array.from({ length: count }, (_, k) => [k, `Channel ${k + 1}`]));
    return choice("Of", names, (channel) => {
      this.channel = Number(channel);
      change(this.paint(this.current));
    }).label;
  }
}

export function pictureButtons(picture, pixels) {
  const { canvas } = picture;
  const own = ["One pixel of the screen for each of the signal (1)", () => picture.look({ ...picture.view, scale: 1 })];
  const zoom = (factor) => picture.zoom(factor, canvas.width / 2, canvas.height / 2);
  return zoomButtons(zoom, { Fit: ["Show all of it (0)", () => picture.fit()], ...(pixels && { "1:1": own }) });
}

function addComparison(picture, stage, toolbar, original, quantity) {
  const comparison = new Comparison(picture, stage, original);
  const modes = { off: "nothing", nearest: "pixels, nearest", bicubic: "pixels, bicubic" };
  const { select, label } = choice("Compare with", modes, (mode) => comparison.choose(mode));
  toolbar.append(label);
  quantity.addEventListener("change", () => {
    comparison.choose((select.value = "off")); // pixels have no derivatives to compare with
    select.disabled = quantity.value !== "value";
  });
  return () => {
    if (select.disabled) return;
    const names = Object.keys(modes);
    comparison.choose((select.value = names[(names.indexOf(select.value) + 1) % names.length]));
  };
}

// Keys, and the line that says what is in view and what is under the pointer.
export function watch(picture, header, status, keys) {
  const { canvas } = picture;
  const fit = () => picture.fit();
  listen(canvas, {
    pan: (dx, dy) => picture.pan(dx, dy),
    zoom: (factor, x, y) => picture.zoom(factor, x, y),
    keys: { 0: fit, Home: fit, 1: () => picture.look({ ...picture.view, scale: 1 }), ...keys },
  });
  picture.listen((event) => {
    const from = picture.position(...picture.point(0, 0));
    const to = picture.position(...picture.point(canvas.width, canvas.height));
    canvas.dataset.region = JSON.stringify(from.map((x, k) => [x, to[k]]));
    status.view.textContent = `${number(100 * picture.view.scale)} %`;
    status.busy(event !== "ready");
  });
  probe(picture, status);
}

// The value under the pointer, one request at a time.
function probe(picture, status) {
  let asking = false;
  picture.canvas.addEventListener("pointermove", async (event) => {
    if (asking || event.buttons !== 0) return;
    const point = picture.point(...placeOf(picture.canvas, event));
    const { size, across, down } = picture.space;
    if (point.some((x, k) => x < 0 || x > size[1 - k])) return;
    const origin = picture.position(...point);
    asking = true;
    const { values } = await picture.pool.evaluate({ origin, across, down, columns: 1, rows: 1 }, picture.quantity);
    asking = false;
    const step = Math.max(...across.map(Math.abs)) / picture.view.scale;
    const place = origin.map((x) => number(x, step)).join(", ");
    status.place.textContent = `(${place}): ${Array.from(values, (x) => number(x)).join(", ")}`;
  });
}
