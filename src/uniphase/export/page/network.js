// The network file that the page carries: safetensors, whose metadata hold a JSON header.

const KINDS = {
  F64: [8, (view, at) => view.getFloat64(at, true)],
  F32: [4, (view, at) => view.getFloat32(at, true)],
  F16: [2, (view, at) => half(view.getUint16(at, true))],
  I16: [2, (view, at) => view.getInt16(at, true)],
  I8: [1, (view, at) => view.getInt8(at)],
};

export function readNetwork(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  const entries = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const header = JSON.parse(entries.__metadata__.uniphase);
  const tensor = (name) => (entries[name] ? readTensor(view, start, entries[name]) : null);
  const layers = header.blueprint.layers.map((plan, i) => {
    const name = `layers.${i}.weight`;
    const weight = scaled(tensor(name), tensor(`${name}.scales`), plan.rows);
    return prepare(plan, weight, tensor(`layers.${i}.bias`) ?? new Float64Array(plan.rows));
  });
  return { header, layers };
}

export function fromBase64(text) {
  return Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
}

function readTensor(view, start, { dtype, data_offsets: [low, high] }) {
  const [size, read] = KINDS[dtype];
  return Float64Array.from({ length: (high - low) / size }, (_, i) => read(view, start + low + i * size));
}

function half(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size = exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15);
  return bits >> 15 ? -size : size;
}

function scaled(integers, scales, rows) {
  if (scales === null) return integers;
  const columns = integers.length / rows;
  return integers.map((number, i) => number * scales[Math.floor(i / columns)]);
}

// Weights that give the argument of the activation. Sines take theirs in turns of 2π: whole turns can then be dropped
// without loss, which keeps phases of hundreds of radians exact in float32.
function prepare({ rows, columns, activation, omega }, weight, bias) {
  const periodic = activation === "sine" || activation === "sincos";
  const factor = omega / (periodic ? 2 * Math.PI : 1);
  const layer = { rows, columns, activation, weight: weight.map((w) => w * factor), bias: bias.map((b) => b * factor) };
  return activation === "sincos" ? unfolded(layer) : layer;
}

// [sin z, cos z] as sines alone: a cosine is a quarter of a turn ahead.
function unfolded({ rows, columns, weight, bias }) {
  const twice = new Float64Array(2 * weight.length);
  twice.set(weight);
  twice.set(weight, weight.length);
  const shifted = Float64Array.from({ length: 2 * rows }, (_, i) => (i < rows ? bias[i] : bias[i - rows] + 0.25));
  return { rows: 2 * rows, columns, activation: "sine", weight: twice, bias: shifted };
}
