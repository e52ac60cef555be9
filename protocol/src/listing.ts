// Reads a guest's folder listing (format: files.ts). A guest may send anything: returns null for a
// listing that does not fit the request, or exceeds FILE_LIST. The bounds matter because each entry
// is shown with its whole path: a few bytes of a listing could become a huge response.
import { FILE_LIST, FILE_PATH_BYTES } from './guest-limits.ts';

const FOLDER = 0x44; // D
const FACTS = 0x6d; // m
const TARGET = 0x74; // t
const FACTS_FORM = /^(\d{1,20}) (-?\d{1,20})(?: ([0-7]{4}))?$/;
const KINDS: Readonly<Record<number, EntryKind>> = { 0x64: 'directory', 0x66: 'file', 0x6c: 'link', 0x6f: 'other' };
const END = 0x45; // E
const WHOLE = 0x43; // C
const CUT = 0x54; // T
/** Includes the entry at which the guest stops: a path, twice a name, and a target. */
const MOST_TEXT_BYTES = FILE_LIST.textBytes + 4 * FILE_PATH_BYTES;

type EntryKind = 'directory' | 'file' | 'link' | 'other';

/**
 * `facts`: absent from guest daemons before version 5, whose `file` is anything but a folder;
 * without `mode` before version 10. `target`: of a link.
 */
interface ListedEntry {
  name: string;
  kind: EntryKind;
  facts?: { size: number; mtimeSeconds: number; mode?: string };
  target?: string;
}

/** Names and targets are raw bytes, a character each (latin1). */
interface ListedFolder {
  /** Below the requested folder, each name after a slash; empty for that folder itself. */
  path: string;
  entries: ListedEntry[];
}

export interface Listing {
  /**
   * The first is the requested folder; every other is an entry of an earlier one, and none appears
   * twice.
   */
  folders: ListedFolder[];
  /** The listing is incomplete. */
  truncated: boolean;
}

interface ListingAsked {
  /** Path of the requested folder. */
  root: string;
  depth: number;
}

/** Returns null for anything but a complete listing of at most `depth` levels. */
export function parseListing(bytes: Buffer, { root, depth }: ListingAsked): Listing | null {
  const rootBytes = root === '/' ? 0 : Buffer.byteLength(root);
  const folders: ListedFolder[] = [];
  let entries = 0;
  let textBytes = 0;
  /** Announced folders, by path, with their level. */
  const known = new Map<string, number>([['', 1]]);
  let open: { folder: ListedFolder; level: number } | undefined;
  let at = 0;
  for (;;) {
    const kind = bytes[at];
    if (kind === END) {
      const how = bytes[at + 1];
      const valid = at + 2 === bytes.length && folders.length > 0 && (how === CUT || how === WHOLE);
      return valid ? { folders, truncated: how === CUT } : null;
    }
    const end = bytes.indexOf(0, at);
    if (end < 0) return null;
    const text = bytes.toString('latin1', at + 1, end);
    at = end + 1;
    if (kind === FOLDER) {
      const level = known.get(text);
      if (level === undefined || level > depth) return null;
      known.delete(text);
      open = { folder: { path: text, entries: [] }, level };
      folders.push(open.folder);
    } else if (kind === FACTS) {
      const entry = open?.folder.entries.at(-1);
      const [, size, mtime, mode] = FACTS_FORM.exec(text) ?? [];
      if (entry === undefined || entry.facts !== undefined || size === undefined) return null;
      entry.facts = {
        size: Math.min(Number(size), Number.MAX_SAFE_INTEGER),
        mtimeSeconds: Number(mtime),
        ...(mode === undefined ? {} : { mode }),
      };
    } else if (kind === TARGET) {
      const entry = open?.folder.entries.at(-1);
      textBytes += text.length;
      if (entry?.kind !== 'link' || entry.facts === undefined || entry.target !== undefined) return null;
      if (text === '' || text.length > FILE_PATH_BYTES || textBytes > MOST_TEXT_BYTES) return null;
      entry.target = text;
    } else {
      const entryKind = KINDS[kind ?? 0];
      if (entryKind === undefined || open === undefined || !isName(text)) return null;
      entries += 1;
      textBytes += rootBytes + open.folder.path.length + 2 * text.length;
      if (entries > FILE_LIST.entries || textBytes > MOST_TEXT_BYTES) return null;
      open.folder.entries.push({ name: text, kind: entryKind });
      if (entryKind === 'directory') known.set(`${open.folder.path}/${text}`, open.level + 1);
    }
  }
}

function isName(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..' && !text.includes('/');
}
