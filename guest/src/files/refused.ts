// Refusals of file calls: codes of the wire for the helper's words and the kernel's errors.
import { constants } from 'node:os';
import { FILE_ERRORS, type FileErrorCode } from '@berth/protocol/guest-limits.ts';

/**
 * `status`: HTTP status; `errno`: the kernel's error name, when no code covers it; `size`: bytes of
 * a file that has another size than an append requires.
 */
export class FileRefused extends Error {
  override readonly name = 'FileRefused';
  readonly code: FileErrorCode;
  readonly errno: string | undefined;
  readonly size: number | undefined;

  constructor(code: FileErrorCode, message: string, { errno, size }: { errno?: string; size?: number } = {}) {
    super(message);
    this.code = code;
    this.errno = errno;
    this.size = size;
  }

  get status(): number {
    return FILE_ERRORS[this.code];
  }
}

const CODES: Readonly<Record<string, FileErrorCode>> = {
  directory: 'not_a_file',
  special: 'not_a_file',
  large: 'file_too_large',
  changed: 'file_changed',
  busy: 'guest_busy',
  folders: 'watch_too_large',
  watches: 'watch_limit',
  EEXIST: 'file_exists',
  ENOTEMPTY: 'folder_not_empty',
  ENOENT: 'file_not_found',
  ENOTDIR: 'not_a_directory',
  EISDIR: 'not_a_file',
  EACCES: 'file_access_denied',
  EPERM: 'file_access_denied',
  EROFS: 'file_access_denied',
  ENAMETOOLONG: 'file_path_invalid',
  ELOOP: 'file_path_invalid',
  ENOSPC: 'guest_disk_full',
  EDQUOT: 'guest_disk_full',
};

/** `why`: an errno of the kernel, or a word of the helper. */
export function refusal(why: string): FileRefused {
  const [, size] = /^sized (\d+)$/.exec(why) ?? [];
  if (size !== undefined) return new FileRefused('file_changed', why, { size: Number(size) });
  const name = Object.entries(constants.errno).find(([, number]) => String(number) === why)?.[0] ?? why;
  const code = CODES[name];
  return code === undefined
    ? new FileRefused('file_system_error', name, /^E[A-Z0-9]+$/.test(name) ? { errno: name } : {})
    : new FileRefused(code, name);
}
