// Paths, sizes and kinds of the files of a sandbox.

export const ROOT = '/code';
const MIB = 1_048_576;
/** Limits of the service for a write and a read as JSON. */
export const EDIT_BYTES = 2 * MIB;
export const PREVIEW_BYTES = 8 * MIB;
/** A download is held by the browser until it is complete. */
export const DOWNLOAD_BYTES = 512 * MIB;
const HEX_BYTES = 512;
const HEX_ROW = 16;

const IMAGES: Readonly<Record<string, string>> = {
  png: 'image/png',
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  gif: 'image/gif',
  webp: 'image/webp',
};

/** For files that are too long for the page. */
export const copyCommand = (sandboxId: string): string => `berth cp ${sandboxId}:FILE .`;

export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/';
export const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
export const join = (folder: string, name: string): string => `${folder === '/' ? '' : folder}/${name}`;

/** The folder and those above it, up to the root folder of the page. */
export function foldersAbove(path: string): string[] {
  const found: string[] = [];
  for (let at = parentOf(path); at.startsWith(`${ROOT}/`); at = parentOf(at)) found.push(at);
  return found;
}

/** Type of an image that every browser draws, or null. Never a document, such as SVG. */
export function imageType(path: string): string | null {
  return IMAGES[path.slice(path.lastIndexOf('.') + 1).toLowerCase()] ?? null;
}

export function isName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && !name.includes('/');
}

/** Offset, bytes and characters of the first bytes. */
export function hexRows(bytes: Uint8Array): string[] {
  const rows: string[] = [];
  for (let at = 0; at < Math.min(bytes.length, HEX_BYTES); at += HEX_ROW) {
    const row = [...bytes.subarray(at, Math.min(at + HEX_ROW, HEX_BYTES))];
    const hex = row.map((byte) => byte.toString(16).padStart(2, '0')).join(' ');
    const characters = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '.')).join('');
    rows.push(`${at.toString(16).padStart(6, '0')}  ${hex.padEnd(3 * HEX_ROW)} ${characters}`);
  }
  return rows;
}

/** Line end of every line of the text; with different ones, CR belongs to the lines. */
export function lineEndOf(text: string): '\r\n' | '\n' {
  const lines = text.match(/\r?\n/g) ?? [];
  const uniform = lines.length > 0 && lines.every((end) => end === '\r\n') && !/\r(?!\n)/.test(text);
  return uniform ? '\r\n' : '\n';
}
