// Mouse, touch and keyboard, as moves of a view: pan(dx, dy) and zoom(factor, x, y) in pixels of the canvas.

const KEY_STEP = 60;
const KEY_ZOOM = 1.5;

export function listen(canvas, { pan, zoom, keys }) {
  listenToWheel(canvas, zoom);
  listenToPointers(canvas, pan, zoom);
  listenToKeys(canvas, pan, zoom, keys);
}

// Where an event is, in pixels of the canvas.
export function placeOf(canvas, event) {
  const box = canvas.getBoundingClientRect();
  const ratio = canvas.width / box.width;
  return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio];
}

function listenToWheel(canvas, zoom) {
  const turn = (event) => {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 20 : 1;
    zoom(Math.exp(Math.max(-1, Math.min(1, -0.002 * lines * event.deltaY))), ...placeOf(canvas, event));
  };
  canvas.addEventListener("wheel", turn, { passive: false });
  canvas.addEventListener("dblclick", (event) => zoom(2, ...placeOf(canvas, event)));
}

function listenToPointers(canvas, pan, zoom) {
  const pointers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, placeOf(canvas, event));
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) return;
    const before = [...pointers.values()];
    pointers.set(event.pointerId, placeOf(canvas, event));
    moveFingers(before, [...pointers.values()], pan, zoom);
  });
  for (const end of ["pointerup", "pointercancel"]) {
    canvas.addEventListener(end, (event) => pointers.delete(event.pointerId));
  }
}

function listenToKeys(canvas, pan, zoom, keys) {
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 4 * KEY_STEP : KEY_STEP;
    const magnify = (factor) => () => zoom(factor, canvas.width / 2, canvas.height / 2);
    const actions = {
      ArrowLeft: () => pan(step, 0),
      ArrowRight: () => pan(-step, 0),
      ArrowUp: () => pan(0, step),
      ArrowDown: () => pan(0, -step),
      "+": magnify(KEY_ZOOM),
      "=": magnify(KEY_ZOOM),
      "-": magnify(1 / KEY_ZOOM),
      ...keys,
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
}

// One finger drags; of two, the middle drags and the distance zooms.
function moveFingers(before, after, pan, zoom) {
  const middle = (points) => [0, 1].map((k) => points.reduce((sum, point) => sum + point[k], 0) / points.length);
  const spread = ([a, b]) => Math.max(1, Math.hypot(a[0] - b[0], a[1] - b[1]));
  const [from, to] = [middle(before), middle(after)];
  pan(to[0] - from[0], to[1] - from[1]);
  if (before.length === 2) zoom(spread(after) / spread(before), ...to);
}
