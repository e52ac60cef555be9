// Maps file system errors of a sandbox to API errors. Codes come from the host; messages are
// defined here, because the guest's text is untrusted.
import type { ErrorCode } from '@berth/contract/route/errors.ts';
import { FILE_LIMITS } from '@berth/contract/route/limits.ts';
import type { SandboxAction } from '@berth/contract/sandboxes/state.ts';
import { FILE_WATCH_LIMITS } from '@berth/contract/route/file-watch.ts';
import { FILE_ERRORS, type FileErrorCode } from '@berth/protocol/files.ts';
import { HostError } from '../../hosts/error.ts';
import { CodedError } from '../../rules/coded-error.ts';
import type { ServiceContext } from '../context/context.ts';
import { explainHostFailure } from '../hosts/failure.ts';

const BUSY_RETRY_AFTER_SECONDS = 1;
const WATCH_RETRY_AFTER_SECONDS = 60;

type Words = { readonly [code in Exclude<FileErrorCode, 'guest_busy'>]: string };

/** Message text after the path. */
const WORDS: Words = {
  file_path_invalid: 'the path or a name in it is too long, or it contains a loop of symbolic links',
  not_a_file: 'this is a directory, socket, device or FIFO; a file is required',
  not_a_directory: 'this, or a parent of it, is a file; a directory is required',
  file_access_denied: "the sandbox's user lacks the permission, or the file system is read-only",
  file_not_found: 'no such file or directory in the sandbox',
  file_too_large: `the file exceeds the limit of ${FILE_LIMITS.readBytes} bytes for one read`,
  file_system_error: "the sandbox's file system returned an error",
  file_changed: 'the file has changed since it was read, or was deleted; read it again',
  file_exists: 'a file or folder has this path already',
  folder_not_empty: 'the folder is not empty',
  watch_too_large: `cannot watch it: there are more than ${FILE_WATCH_LIMITS.folders} folders below`,
  watch_limit:
    `cannot watch it: ${FILE_WATCH_LIMITS.perSandbox} folders of the sandbox are watched already, or its programs ` +
    'use up the inotify instances or watches of its user',
  guest_disk_full: "the sandbox's disk is full; the previous content is unchanged",
};

/** The same of an append. */
export const APPEND_WORDS: Partial<Words> = {
  not_a_file: 'this is a directory, link, socket, device or FIFO; an append requires a file itself',
  file_changed: 'the file was moved or deleted meanwhile; query its size and continue there',
  guest_disk_full:
    "the sandbox's disk is full; the bytes that fit are written. Free space and continue at the file's size",
};

interface FailedFileCall {
  sandboxId: string;
  action: Extract<SandboxAction, `files_${string}`>;
  /** Quoted. */
  what: string;
  /** Consequence that a failure of the host leaves open; only of calls that change files. */
  open?: string | undefined;
  words?: Partial<Words> | undefined;
}

/** Converts the failure to the API's error. */
export async function explainFileFailure(
  context: ServiceContext,
  call: FailedFileCall,
  error: unknown,
): Promise<unknown> {
  const { sandboxId, action, what, open, words } = call;
  if (error instanceof HostError && error.code === 'file_call_unsupported') {
    const why = 'this sandbox is of a release without it; use a command, or create another sandbox';
    return new CodedError('file_call_unsupported', `cannot carry out the call on ${what}: ${why}`, { cause: error });
  }
  if (!(error instanceof HostError) || !isFileError(error.code))
    return await explainHostFailure(context, sandboxId, action, error, open === undefined ? '' : `; ${open}`);

  if (error.code === 'guest_busy') {
    const options = { retryAfterSeconds: BUSY_RETRY_AFTER_SECONDS, cause: error };
    return new CodedError(
      'sandbox_busy',
      'too many concurrent file calls in this sandbox, or an append to this file is running; try again in a moment',
      options,
    );
  }
  const errno = error.errno === undefined ? '' : ` (${error.errno})`;
  const message = words?.[error.code] ?? WORDS[error.code];
  return new CodedError(error.code satisfies ErrorCode, `${what}: ${message}${errno}`, {
    cause: error,
    ...(error.code === 'watch_limit' ? { retryAfterSeconds: WATCH_RETRY_AFTER_SECONDS } : {}),
  });
}

function isFileError(code: string): code is FileErrorCode {
  return Object.hasOwn(FILE_ERRORS, code);
}
