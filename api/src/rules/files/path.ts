// Resolves a caller's path: relative paths start at /code; `.` and `..` are resolved lexically. The
// sandbox resolves links.
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import { CodedError } from '../coded-error.ts';

const CODE_FOLDER = '/code';
/** Limit of a path quoted in a message. */
const SHOWN_CHARACTERS = 200;
const utf8 = new TextEncoder();

/**
 * The absolute path of a directory: no empty, `.` or `..` component and no trailing slash, except
 * `/` itself. Throws `file_path_invalid` if too long.
 */
export function folderPath(given: string): string {
  const parts: string[] = [];
  for (const part of `${given.startsWith('/') ? '' : `${CODE_FOLDER}/`}${given}`.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '' && part !== '.') parts.push(part);
  }
  const path = `/${parts.join('/')}`;
  const bytes = utf8.encode(path).length;
  if (bytes > FILE_LIMITS.pathBytes) {
    throw new CodedError(
      'file_path_invalid',
      `path: ${bytes} bytes exceed the limit of ${FILE_LIMITS.pathBytes} bytes for a path`,
    );
  }

  return path;
}

/**
 * The absolute path of a file. Throws `not_a_file` for a path that can only name a directory: it
 * ends in a slash, `.` or `..`.
 */
export function filePath(given: string): string {
  if (/(^|\/)\.{0,2}$/.test(given)) {
    throw new CodedError(
      'not_a_file',
      `path: ${quotedPath(given)} ends in a slash or a dot, so it is a directory; a file is required`,
    );
  }
  return folderPath(given);
}

/** The absolute path of a file or folder that a change names; may end in slashes. */
export function entryPath(given: string): string {
  return filePath(given.replace(/\/+$/, ''));
}

/** A path for a message: quoted and truncated. */
export function quotedPath(path: string): string {
  return JSON.stringify(path.length <= SHOWN_CHARACTERS ? path : `${path.slice(0, SHOWN_CHARACTERS)}...`);
}
