// Converts a guest's listing to the wire format. Names are bytes in Linux and text in the API.
import { isUtf8 } from 'node:buffer';
import type { FileEntry } from '@berth/contract/files/files.ts';
import { parseListing } from '@berth/protocol/listing.ts';
import { HostError } from '../../hosts/error.ts';

/** First second of the year 0, and last of 9999, from 1970. */
const [FIRST_SECOND, LAST_SECOND] = [-62_167_219_200, 253_402_300_799];

export interface FoldersListed {
  truncated: boolean;
  directories: Record<string, FileEntry[]>;
}

/**
 * Folders by path, each with its entries sorted by label. Invalid UTF-8 in a name is shown as
 * U+FFFD. Such a name cannot be used as a path, so a folder with one is not descended into and the
 * listing counts as truncated. Throws {@link HostError} for a malformed listing.
 */
export function readListing(bytes: Buffer, root: string, depth: number): FoldersListed {
  const listing = parseListing(bytes, { root, depth });
  if (listing === null) throw new HostError('guest_unreachable', "the guest's listing violates its protocol");
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
      .map(({ name, kind, facts, target }): FileEntry => {
        const { text: label } = textOf(name);
        const type = kind === 'directory' ? kind : 'file';
        const entry = { label, path: `${folder}/${label}`, type } as const;
        if (facts === undefined) return entry;
        const { size, mtimeSeconds, mode } = facts;
        const link = target === undefined ? undefined : textOf(target);
        return {
          ...entry,
          kind,
          size,
          modifiedAt: timeOf(mtimeSeconds),
          ...(mode === undefined ? {} : { mode }),
          ...(link?.exact === true ? { linkTarget: link.text } : {}),
        };
      })
      .toSorted(byLabel);
  }
  return { truncated, directories };
}

function byLabel(a: FileEntry, b: FileEntry): number {
  if (a.label === b.label) return 0;
  return a.label < b.label ? -1 : 1;
}

/** Null for a year that RFC 3339 cannot express; a guest may set any time. */
export function timeOf(seconds: number): string | null {
  return seconds >= FIRST_SECOND && seconds <= LAST_SECOND ? new Date(seconds * 1_000).toISOString() : null;
}

/** `name` has one character per byte. */
function textOf(name: string): { text: string; exact: boolean } {
  const bytes = Buffer.from(name, 'latin1');
  return { text: bytes.toString('utf8'), exact: isUtf8(bytes) };
}
