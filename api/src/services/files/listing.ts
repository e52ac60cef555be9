// A listing as a caller sees it, from the bytes that a guest sent. Linux's names are bytes; the
// API's are text.
import { isUtf8 } from 'node:buffer';
import type { FileEntry } from '@berth/contract/files/files.ts';
import { parseListing } from '@berth/protocol/listing.ts';
import { HostError } from '../../hosts/error.ts';

export interface FoldersListed {
  truncated: boolean;
  directories: Record<string, FileEntry[]>;
}

/**
 * The folders by path, each with its entries sorted by label. A name that is no UTF-8 is shown with
 * U+FFFD in the place of what is none: it cannot be asked for by that, so a folder with such a name
 * is not looked into, and the listing is said to be truncated. Throws {@link HostError} for what is
 * no listing.
 */
export function readListing(bytes: Buffer, root: string, depth: number): FoldersListed {
  const listing = parseListing(bytes, { root, depth });
  if (listing === null) throw new HostError('guest_unreachable', "the guest's listing is not of its protocol");
  let { truncated } = listing;
  const above = root === '/' ? '' : root;
  const directories: Record<string, FileEntry[]> = {};
  for (const { path, entries } of listing.folders) {
    const below = textOf(path);
    if (!below.exact) {
      truncated = true;
      continue;
    }
    const folder = above + below.text;
    directories[folder === '' ? '/' : folder] = entries
      .map(({ name, isFolder }): FileEntry => {
        const { text: label } = textOf(name);
        return { label, path: `${folder}/${label}`, type: isFolder ? 'directory' : 'file' };
      })
      .toSorted(byLabel);
  }
  return { truncated, directories };
}

function byLabel(a: FileEntry, b: FileEntry): number {
  if (a.label === b.label) return 0;
  return a.label < b.label ? -1 : 1;
}

/** `name` has one character a byte. */
function textOf(name: string): { text: string; exact: boolean } {
  const bytes = Buffer.from(name, 'latin1');
  return { text: bytes.toString('utf8'), exact: isUtf8(bytes) };
}
