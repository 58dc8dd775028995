// Returns the visible texts whose contrast against what is behind them is below 4.5 to 1.
() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const over = (layers) => {
    context.clearRect(0, 0, 1, 1);
    for (const layer of layers) {
      context.fillStyle = layer;
      context.fillRect(0, 0, 1, 1);
    }
    return context.getImageData(0, 0, 1, 1).data;
  };
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => {
      const share = v / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const weak = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((n) => n.nodeType === 3 && n.data.trim());
    if (!text.length || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    if (element.closest(":disabled, .unseen, .skip, noscript")) continue;
    const layers = [];
    for (let at = element; at; at = at.parentElement) layers.unshift(getComputedStyle(at).backgroundColor);
    const behind = luminance(over(layers));
    const front = luminance(over([...layers, getComputedStyle(element).color]));
    const ratio = (Math.max(behind, front) + 0.05) / (Math.min(behind, front) + 0.05);
    if (ratio < 4.5) weak.push(`${ratio.toFixed(2)}: ${element.className} ${text[0].data.trim().slice(0, 40)}`);
  }
  return weak;
}
