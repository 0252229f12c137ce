// A plane is a lattice of samples in the domain: sample (i, j) lies at origin + i · across + j · down.

// The input layer along a plane, in float64: sample (i, j) has start + (i - middle) · across + (j - center) · down.
// Whole turns of sines are dropped here, so that zooming in never runs out of digits.
export function inputPhases(layer, plane) {
  const middle = Math.floor(plane.columns / 2);
  const center = Math.floor(plane.rows / 2);
  const origin = plane.origin.map((x, k) => x + middle * plane.across[k] + center * plane.down[k]);
  const reduce = layer.activation === "sine" ? (z) => z - Math.round(z) : (z) => z;
  const along = (direction) =>
    Float64Array.from({ length: layer.rows }, (_, row) => {
      let sum = 0;
      for (let k = 0; k < layer.columns; k++) sum += layer.weight[row * layer.columns + k] * direction[k];
      return sum;
    });
  const start = along(origin).map((z, row) => reduce(z + layer.bias[row]));
  return { middle, center, start, across: along(plane.across).map(reduce), down: along(plane.down).map(reduce) };
}

// Slopes of the input layer along the coordinates, by which derivatives begin. Those of sines are in radians.
export function inputSlopes(layer, axis) {
  const unit = layer.activation === "sine" ? 2 * Math.PI : 1;
  return Float64Array.from({ length: layer.rows }, (_, row) => unit * layer.weight[row * layer.columns + axis]);
}

// From channels and derivatives of each sample to what is asked for. States are value, slopes, curvature.
export function outputs(states, samples, channels, quantity) {
  if (quantity === "value") return { values: states[0], channels };
  if (quantity === "laplacian") return { values: states[3], channels };
  const norms = new Float32Array(samples);
  for (let n = 0; n < samples; n++) {
    let sum = 0;
    for (let k = n * channels; k < (n + 1) * channels; k++) sum += states[1][k] ** 2 + states[2][k] ** 2;
    norms[n] = Math.sqrt(sum);
  }
  return { values: norms, channels: 1 };
}
