// QR codes as inline SVG: dark on light in both colour schemes, because scanners expect that.
import { encode } from 'uqr';
import { html, type Html } from '../../rules/html.ts';

/** Modules of white around the code, which scanners need. */
const BORDER = 4;

/** @param name read aloud in place of the picture */
export function qrCode(text: string, name: string): Html {
  const { data, size } = encode(text, { ecc: 'M', border: BORDER });
  const dark = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? [`M${x} ${y}h1v1h-1z`] : [])));
  return html`<svg
    class="qr"
    role="img"
    aria-label="${name}"
    viewBox="0 0 ${size} ${size}"
    shape-rendering="crispEdges"
  >
    <rect width="${size}" height="${size}" fill="#fff" />
    <path d="${dark.join('')}" fill="#000" />
  </svg>`;
}
