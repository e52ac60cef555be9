// Reads a listing of folders as a guest sends it (the format is in files.ts). A guest may send
// anything: what is no listing of what was asked for is null, and so is one beyond the bounds of
// FILE_LIST, because each entry is shown with its whole path: a few bytes of a listing could be any
// number of an answer.
import { FILE_LIST, FILE_PATH_BYTES } from './guest-limits.ts';

const FOLDER = 0x44; // D
const ENTRY_FOLDER = 0x64; // d
const ENTRY_OTHER = 0x66; // f
const END = 0x45; // E
const WHOLE = 0x43; // C
const CUT = 0x54; // T
/** With the entry at which the guest stops: a path and twice a name. */
const MOST_TEXT_BYTES = FILE_LIST.textBytes + 3 * FILE_PATH_BYTES;

/** Names are the bytes they are, one character each (latin1). */
interface ListedFolder {
  /** Below the folder asked for, each name after a slash; empty for that folder itself. */
  path: string;
  entries: { name: string; isFolder: boolean }[];
}

export interface Listing {
  /**
   * The first one is the folder asked for; every other one is an entry of one before it, and each
   * comes once.
   */
  folders: ListedFolder[];
  /** Whether there is more than is listed. */
  truncated: boolean;
}

/** What was asked for. */
interface ListingAsked {
  /** Path of the folder. */
  root: string;
  depth: number;
}

/** Null for anything but a whole listing of at most `depth` levels. */
export function parseListing(bytes: Buffer, { root, depth }: ListingAsked): Listing | null {
  const rootBytes = root === '/' ? 0 : Buffer.byteLength(root);
  const folders: ListedFolder[] = [];
  let entries = 0;
  let textBytes = 0;
  /** Folders that may still be opened, by path, with their level. */
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
    } else {
      if ((kind !== ENTRY_FOLDER && kind !== ENTRY_OTHER) || open === undefined || !isName(text)) return null;
      entries += 1;
      textBytes += rootBytes + open.folder.path.length + 2 * text.length;
      if (entries > FILE_LIST.entries || textBytes > MOST_TEXT_BYTES) return null;
      open.folder.entries.push({ name: text, isFolder: kind === ENTRY_FOLDER });
      if (kind === ENTRY_FOLDER) known.set(`${open.folder.path}/${text}`, open.level + 1);
    }
  }
}

function isName(text: string): boolean {
  return text !== '' && text !== '.' && text !== '..' && !text.includes('/');
}
