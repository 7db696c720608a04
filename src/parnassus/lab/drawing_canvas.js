// A canvas to draw on: strokes are rendered at high resolution and averaged to the grey pixels of the model.
export default {
  template: `<canvas class="pad" tabindex="0" role="img" :aria-label="label"
    @pointerdown="down" @pointermove="move" @pointerup="up" @pointercancel="up" @keydown="key" @focus="paint" @blur="paint"></canvas>`,
  props: { shape: Array, value: Array, label: String, side: { type: Number, default: 320 } },
  mounted() {
    const [height, width] = this.shape;
    this.cell = Math.max(1, Math.floor(this.side / Math.max(height, width)));
    this.fine = Object.assign(document.createElement("canvas"), { width: width * this.cell, height: height * this.cell });
    this.small = Object.assign(document.createElement("canvas"), { width, height });
    this.$el.width = width * this.cell;
    this.$el.height = height * this.cell;
    this.cursor = [Math.floor(height / 2), Math.floor(width / 2)];
    this.pixels = new Array(height * width).fill(0);
    this.last = null;
    this.load(this.value);
  },
  methods: {
    position(event) {
      const box = this.$el.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * this.$el.width, ((event.clientY - box.top) / box.height) * this.$el.height];
    },
    down(event) {
      this.$el.setPointerCapture(event.pointerId);
      this.last = this.position(event);
      this.stroke(this.last, this.last, event.button === 2 || event.shiftKey);
    },
    move(event) {
      if (!this.last) return;
      const now = this.position(event);
      this.stroke(this.last, now, (event.buttons & 2) > 0 || event.shiftKey);
      this.last = now;
    },
    up() {
      if (this.last) this.send(true);
      this.last = null;
    },
    stroke(from, to, erase) {
      const pen = this.fine.getContext("2d");
      const isSmall = Math.max(...this.shape) < 16;
      Object.assign(pen, { lineCap: "round", lineJoin: "round", lineWidth: this.cell * (isSmall ? 1.15 : 2.2), strokeStyle: erase ? "#000" : "#fff" });
      pen.beginPath();
      pen.moveTo(...from);
      pen.lineTo(to[0] + 0.01, to[1]);
      pen.stroke();
      this.average();
    },
    average() {
      const [height, width] = this.shape;
      const ink = this.fine.getContext("2d").getImageData(0, 0, this.fine.width, this.fine.height).data;
      const area = this.cell * this.cell * 255;
      for (let row = 0; row < height; row++)
        for (let column = 0; column < width; column++) {
          let sum = 0;
          for (let y = 0; y < this.cell; y++) {
            let at = ((row * this.cell + y) * this.fine.width + column * this.cell) * 4;
            for (let x = 0; x < this.cell; x++, at += 4) sum += ink[at];
          }
          this.pixels[row * width + column] = Math.round((sum / area) * 1000) / 1000;
        }
      this.paint();
      this.send(false);
    },
    paint() {
      const [height, width] = this.shape;
      const pen = this.$el.getContext("2d");
      this.pixels.forEach((grey, index) => {
        const shade = Math.round(grey * 255);
        pen.fillStyle = `rgb(${shade},${shade},${shade})`;
        pen.fillRect((index % width) * this.cell, Math.floor(index / width) * this.cell, this.cell, this.cell);
      });
      if (document.activeElement === this.$el && this.$el.matches(":focus-visible")) {
        pen.strokeStyle = "#56b4e9";
        pen.lineWidth = 2;
        pen.strokeRect(this.cursor[1] * this.cell + 1, this.cursor[0] * this.cell + 1, this.cell - 2, this.cell - 2);
      }
    },
    key(event) {
      const [height, width] = this.shape;
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (step) {
        this.cursor = [Math.min(height - 1, Math.max(0, this.cursor[0] + step[0])), Math.min(width - 1, Math.max(0, this.cursor[1] + step[1]))];
        this.paint();
      } else if (event.key === " " || event.key === "Enter") {
        const middle = [(this.cursor[1] + 0.5) * this.cell, (this.cursor[0] + 0.5) * this.cell];
        this.stroke(middle, middle, this.pixels[this.cursor[0] * width + this.cursor[1]] > 0.5);
        this.send(true);
      } else if (event.key === "Delete" || event.key === "Backspace") {
        this.load(new Array(height * width).fill(0));
        this.send(true);
      } else return;
      event.preventDefault();
    },
    load(values) {
      const [height, width] = this.shape;
      this.pixels = Array.from(values);
      const pen = this.fine.getContext("2d");
      this.pixels.forEach((grey, index) => {
        const shade = Math.round(grey * 255);
        pen.fillStyle = `rgb(${shade},${shade},${shade})`;
        pen.fillRect((index % width) * this.cell, Math.floor(index / width) * this.cell, this.cell, this.cell);
      });
      this.paint();
    },
    send(immediately) {
      clearTimeout(this.timeout);
      const delay = immediately ? 0 : Math.max(0, 40 - (performance.now() - (this.lastSent || 0)));
      this.timeout = setTimeout(() => {
        this.lastSent = performance.now();
        this.$emit("draw", this.pixels.slice());
      }, delay);
    },
  },
};
