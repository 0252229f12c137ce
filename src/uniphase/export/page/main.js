// The page: reads the network that it carries, starts the workers, and shows the kind of field that it is.

import { fillDetails } from "./details.js";
import { describe, kindOf } from "./fields.js";
import { showFlat } from "./flat.js";
import { showLine } from "./lines.js";
import { fromBase64, readNetwork } from "./network.js";
import { Pool } from "./pool.js";
import { showSlices } from "./slices.js";

const VIEWERS = {
  ...{ image: showFlat, map: showFlat },
  ...{ sound: showLine, curve: showLine },
  ...{ video: showSlices, volume: showSlices },
};

const MOVES = "arrows move, + and − zoom, 0 shows all of it";
const FLAT = `${MOVES}; v, g and l show values, gradient and Laplacian`;
const KEYS = {
  image: `${FLAT}; 1 shows its own pixels, c compares with them`,
  map: FLAT,
  sound: `${MOVES}, space plays`,
  curve: MOVES,
  video: `${MOVES}, space plays, comma and period step by a frame`,
  volume: `${MOVES}, space plays, comma and period step by a slice`,
};

const find = (id) => document.getElementById(id);

async function main() {
  const bytes = fromBase64(find("network").textContent);
  const { header, layers } = readNetwork(bytes);
  const parameters = layers.reduce((sum, layer) => sum + layer.weight.length + layer.bias.length, 0);
  const summary = describe(header, parameters);
  find("summary").textContent = summary;
  const stage = find("stage");
  const canvas = stage.querySelector("canvas");
  canvas.setAttribute("aria-label", summary);
  find("keys").textContent = `Keys: ${KEYS[kindOf(header)]}; i opens the details.`;
  const webgl = !location.hash.includes("typed-arrays");
  const pool = await Pool.start(find("worker").textContent, layers, webgl);
  find("engine").textContent = pool.engine;
  document.documentElement.dataset.engine = pool.engine;
  fillDetails(find("details"), { header, engine: pool.engine, size: bytes.length });
  addDrawer(canvas);
  const original = await readOriginal(find("original")?.textContent);
  VIEWERS[kindOf(header)]({ header, pool, stage, toolbar: find("toolbar"), status: makeStatus(), original });
}

function makeStatus() {
  const busy = (yes) => find("busy").classList.toggle("on", yes);
  return { view: find("view"), place: find("place"), busy };
}

function addDrawer(canvas) {
  const [button, drawer] = [find("details-button"), find("details")];
  const toggle = (open) => {
    drawer.hidden = !open;
    button.setAttribute("aria-expanded", open);
  };
  button.addEventListener("click", () => toggle(drawer.hidden));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !drawer.hidden) {
      toggle(false);
      button.focus();
    }
  });
  canvas.addEventListener("keydown", (event) => event.key === "i" && toggle(drawer.hidden));
  button.hidden = false;
}

// The pixels of the signal, if the page carries them as a PNG.
async function readOriginal(base64) {
  if (!base64) return null;
  const image = new Image();
  image.src = `data:image/png;base64,${base64.trim()}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: image.naturalWidth, height: image.naturalHeight });
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  return context.getImageData(0, 0, canvas.width, canvas.height);
}

main().catch((error) => {
  console.error(error);
  find("summary").textContent = `This page cannot be shown: ${error.message}`;
});
