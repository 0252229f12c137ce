// Plays a sound from the network. At less than normal speed the network is asked for the samples in between: slow
// motion for the ear, with nothing interpolated.

const CHUNK_SECONDS = 0.5;
const [LOWEST_RATE, HIGHEST_RATE] = [8000, 96000]; // that every browser plays

export class Player {
  constructor(waves, rate, count, channels, { state, head }) {
    Object.assign(this, { waves, count, channels, state, head, speed: 1, stop: null });
    this.rate = Math.min(HIGHEST_RATE, Math.max(LOWEST_RATE, rate));
    this.pitch = rate / this.rate;
  }

  setSpeed(speed) {
    this.speed = speed;
    if (this.stop) {
      this.end();
      this.toggle();
    }
  }

  toggle() {
    if (this.stop) this.end();
    else this.play();
  }

  end() {
    this.stop.abort();
    this.stop = null;
    this.started = undefined;
    this.audio.close();
    this.state("stopped");
  }

  // Chunks are scheduled one after the other as they are made, from when the rest will be ready in time.
  async play() {
    this.stop = new AbortController();
    const { signal } = this.stop;
    this.audio = new AudioContext({ sampleRate: this.rate });
    const step = Math.min(1, this.speed) * this.pitch;
    const total = Math.floor(this.count / step);
    const duration = total / this.rate / Math.max(1, this.speed);
    const began = performance.now();
    const ready = [];
    this.state("preparing", 0);
    for (let from = 0; from < total && !signal.aborted; ) {
      const length = Math.min(Math.ceil(CHUNK_SECONDS * this.rate), total - from);
      const chunk = await this.makeChunk(from, length, step, signal);
      if (chunk === null) return;
      from += length;
      ready.push(chunk);
      const elapsed = (performance.now() - began) / 1000;
      if (this.started === undefined && (elapsed * (total - from)) / from > 0.9 * duration) {
        this.state("preparing", from / total);
        continue;
      }
      this.started ??= this.begin(step, signal);
      for (const [buffer, at] of ready.splice(0)) this.scheduleChunk(buffer, at);
    }
    this.finish(duration, signal);
  }

  async makeChunk(from, length, step, signal) {
    try {
      const values = await this.waves.sample(from * step, step, length, signal);
      const buffer = this.audio.createBuffer(this.channels, length, this.rate);
      for (let c = 0; c < this.channels; c++) {
        buffer.getChannelData(c).set(Float32Array.from({ length }, (_, n) => values[n * this.channels + c]));
      }
      return [buffer, from];
    } catch (error) {
      if (signal.aborted) return null;
      throw error;
    }
  }

  begin(step, signal) {
    const started = this.audio.currentTime + 0.1;
    this.state("playing");
    const follow = () => {
      if (signal.aborted) return;
      const seconds = Math.max(0, this.audio.currentTime - started);
      this.head(seconds * this.rate * Math.max(1, this.speed) * step);
      requestAnimationFrame(follow);
    };
    follow();
    return started;
  }

  scheduleChunk(buffer, from) {
    const fast = Math.max(1, this.speed);
    const source = this.audio.createBufferSource();
    source.buffer = buffer;
    source.playbackRate.value = fast;
    source.connect(this.audio.destination);
    source.start(this.started + from / this.rate / fast);
  }

  finish(duration, signal) {
    const left = this.started + duration - this.audio.currentTime;
    setTimeout(() => {
      if (!signal.aborted) this.end();
    }, 1000 * Math.max(0, left));
  }
}
