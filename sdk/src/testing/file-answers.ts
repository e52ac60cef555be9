// File handlers of the test server, and requests that use a file link, following the contract.
import { partOf } from '../generated/byte-range.ts';
import { SANDBOX_ACTION_RULES } from '../generated/contract-tables.ts';
import { ERRORS, ROUTES } from '../generated/service-tables.ts';
import { note, requirePermission, type Answers, type RequestContext } from './answering.ts';
import { bytesOf, resolve, type TestFiles } from './files/files.ts';
import { hold } from './hold.ts';
import { newId } from './ids.ts';
import { Refusal, type KnownCode } from './requests/refusal.ts';
import type { TestCall, TestRoute } from './requests/request.ts';
import type { FileChanges } from '../generated/raw/index.ts';
import { awakeSandbox } from './sandbox-answers.ts';
import type { Caller, TestFileLink, TestState } from './state.ts';

const PATH = /^\/file-links\/([^/]+)$/;
const METHODS = { read: 'GET', write: 'PUT' } as const;
const ROUTES_BY_ACTION = { read: 'downloadFile', write: 'uploadFile' } as const;

export const FILE_ANSWERS: Answers = {
  listFiles: ({ params, query }, about) => awakeSandbox('files_read', params, about).files.list(String(query['path'])),
  snapshotFiles: ({ params, query }, about) =>
    awakeSandbox('files_read', params, about).files.tree(String(query['path']), Number(query['depth'])),
  watchFiles: async (call, about) => {
    const { path, recursive, cursor } = call.query as { path: string; recursive?: string; cursor?: string };
    const watch = (files: TestFiles) => files.watch(path, recursive === 'true', cursor);
    if (cursor === undefined) return watch(awakeSandbox('files_read', call.params, about).files);
    // Not a use of the sandbox.
    const followed = (): FileChanges => {
      const sandbox = about.state.sandbox(call.params['sandboxId'] ?? '', about.now());
      sandbox.allows('files_read', 'a watch of its folders');
      return watch(sandbox.files);
    };
    await hold(call, about, () => hasNews(followed));
    return followed();
  },
  statFile: ({ params, query }, about) => awakeSandbox('files_read', params, about).files.stat(String(query['path'])),
  readFile: ({ params, query }, about) => awakeSandbox('files_read', params, about).files.read(String(query['path'])),
  writeFile: (call, about) => {
    const { path, content, encoding, ...options } = call.body;
    return changed('sandbox_file_written', call, about, (files) =>
      files.write(path, bytesOf(content, encoding), options),
    );
  },
  deleteFile: (call, about) =>
    changed('sandbox_file_deleted', call, about, (files) =>
      files.delete(String(call.query['path']), call.query['recursive'] === 'true'),
    ),
  moveFile: (call, about) =>
    changed('sandbox_file_moved', call, about, (files) =>
      files.move(call.body.from, call.body.to, call.body.replace === true),
    ),
  setFileMode: (call, about) =>
    changed('sandbox_file_mode_changed', call, about, (files) => files.chmod(call.body.path, call.body.mode)),
  createFolder: (call, about) =>
    changed('sandbox_folder_created', call, about, (files) => files.createFolder(call.body.path)),
  downloadFile: ({ params, query, headers: asked }, about) => {
    const { files } = awakeSandbox('files_read', params, about);
    const path = String(query['path']);
    const bytes = files.bytes(path);
    const etag = files.etag(path);
    const size = bytes.length;
    const request = { range: asked.get('range') ?? undefined, ifRange: asked.get('if-range') ?? undefined };
    const part = partOf(request, size, etag);
    if (part === null) {
      const message = `the range begins behind the end, at ${size} bytes`;
      throw new Refusal('range_not_satisfiable', message, { 'content-range': `bytes */${size}` });
    }
    const { first, length, partial } = part;
    about.headers.set('etag', etag);
    about.headers.set('accept-ranges', 'bytes');
    if (partial) about.headers.set('content-range', `bytes ${first}-${first + length - 1}/${size}`);
    return bytes.slice(first, first + length);
  },
  uploadFile: (call, about) =>
    changed('sandbox_file_written', call, about, (files) => {
      const { path, offset, ...options } = call.query;
      if (offset === undefined) return files.store(String(path), call.body, options);
      if (options['ifUnchanged'] === undefined) return files.append(String(path), call.body, Number(offset), options);
      throw new Refusal('invalid_request', 'query.ifUnchanged cannot be combined with offset');
    }),
  createFileLink: ({ params, body }, about) => {
    const { action, maxBytes = Infinity, overwrite = true, expiresInSeconds, fileName } = body;
    requirePermission(about, action === 'write' ? 'sandbox.files.write' : null);
    const foreign = action === 'read' ? [body.maxBytes, body.overwrite] : [fileName];
    if (foreign.some((value) => value !== undefined))
      throw new Refusal('invalid_request', `maxBytes and overwrite are of a write, fileName of a read`);
    if (/(^|\/)\.{0,2}$/.test(body.path)) throw new Refusal('not_a_file', `${body.path} is a directory`);
    const one = about.state.sandbox(params['sandboxId'] ?? '', about.nowMs);
    one.allows('file_link', 'a file link');
    const { id: sandboxId } = one.record;
    const expiresAtMs = about.nowMs + expiresInSeconds * 1_000;
    const [id, path, token] = [newId('fln'), resolve(body.path), newId('link')];
    const { caller: creator } = about;
    about.state.fileLinks.set(token, { id, sandboxId, action, path, expiresAtMs, maxBytes, overwrite, creator });
    note(about, 'sandbox_file_link_created', { kind: 'sandbox', id: sandboxId }, one.record);
    const url = `${about.origin}/file-links/${token}`;
    return { link: { id, url, method: METHODS[action as 'read'], path, action, expiresAt: timeOf(expiresAtMs) } };
  },
};

/** Also when the held response has to end with a refusal. */
function hasNews(followed: () => FileChanges): boolean {
  try {
    const { changes, reset } = followed();
    return reset || changes.length > 0;
  } catch {
    return true;
  }
}

function changed<T>(kind: string, { params }: TestCall, about: RequestContext, change: (files: TestFiles) => T): T {
  const { files, record } = awakeSandbox('files_write', params, about);
  const result = change(files);
  note(about, kind, { kind: 'sandbox', id: record.id }, record);
  return result;
}

interface Use {
  call: TestCall;
  caller: Caller;
  answer: (call: TestCall, about: RequestContext) => unknown;
}

/** The call that a request makes with a link; null for a request to any other path. */
export function useOfLink(
  { method, headers }: Request,
  { pathname }: URL,
  bytes: Uint8Array,
  { state, nowMs }: { state: TestState; nowMs: number },
): Use | null {
  const token = PATH.exec(pathname)?.[1];
  if (token === undefined) return null;
  const link = state.fileLinks.get(token);
  if (link === undefined) throw new Refusal('file_link_invalid');
  const { id, sandboxId, action, path, maxBytes, overwrite } = link;
  if (METHODS[action] !== (method === 'HEAD' ? 'GET' : method))
    throw new Refusal('method_not_allowed', `the link can only ${action}`, { allow: METHODS[action] });
  if (bytes.length > maxBytes) throw new Refusal('file_too_large', `the limit of the link is ${maxBytes} bytes`);
  if (!isOpen(link, state, nowMs)) throw new Refusal('file_link_expired');
  const name = ROUTES_BY_ACTION[action];
  const route = ROUTES.find((one) => one.name === name) as TestRoute;
  const query = { path, ...(overwrite ? {} : { ifUnchanged: 'absent' }) };
  return {
    call: { route, params: { sandboxId }, query, body: bytes, headers },
    caller: { kind: 'file_link', keyId: id, scopes: null },
    answer: async (call, about) => {
      try {
        return await FILE_ANSWERS[name]?.(call, about);
      } catch (error) {
        throw error instanceof Refusal ? shownTo(error) : error;
      }
    },
  };
}

function isOpen({ sandboxId, expiresAtMs, creator }: TestFileLink, state: TestState, nowMs: number): boolean {
  const { status } = state.sandbox(sandboxId, nowMs);
  const mayShare = creator === null || [...state.callers.values()].includes(creator);
  return nowMs < expiresAtMs && mayShare && SANDBOX_ACTION_RULES.file_link[status] === 'do';
}

/** Errors of the sandbox, rather than of the file, say nothing about it. */
function shownTo(error: Refusal): Refusal {
  const { code } = error;
  const isOfSandbox = /^(?:sandbox|host|machine|concurrent|insufficient)_/.test(code);
  return isOfSandbox && ERRORS[code as KnownCode].status !== 429 ? new Refusal('file_link_unavailable') : error;
}

function timeOf(ms: number): string {
  return new Date(ms).toISOString();
}
