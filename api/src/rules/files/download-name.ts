// Name of a download in a response header. The path is the guest's to choose: its name may hold
// anything but a slash.
import { HIDDEN } from '../shown-text.ts';

const LONGEST = 255;

/**
 * `Content-Disposition` of an attachment (RFC 6266) with the name in UTF-8 (RFC 8187), and in ASCII
 * for old clients. Characters that hide or reorder text, and separators of paths, become `_`, so
 * that no name looks like another.
 */
export function attachment(name: string): string {
  const shown = name.replaceAll(HIDDEN, '_').replaceAll(/[/\\]/g, '_').slice(0, LONGEST).toWellFormed();
  const ascii = shown.replaceAll(/[^\x20-\x7e]|["%]/gu, '_');
  const encoded = encodeURIComponent(shown).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const extended = shown === ascii ? '' : `; filename*=UTF-8''${encoded}`;
  return `attachment; filename="${ascii}"${extended}`;
}
