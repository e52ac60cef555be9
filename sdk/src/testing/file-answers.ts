// File handlers of the test server, following the contract.
import { partOf } from '../generated/byte-range.ts';
import { note, type Answers, type RequestContext } from './answering.ts';
import { bytesOf, type TestFiles } from './files/files.ts';
import { Refusal } from './requests/refusal.ts';
import type { TestCall } from './requests/request.ts';
import { awakeSandbox } from './sandbox-answers.ts';

export const FILE_ANSWERS: Answers = {
  listFiles: ({ params, query }, about) => awakeSandbox('files_read', params, about).files.list(String(query['path'])),
  snapshotFiles: ({ params, query }, about) =>
    awakeSandbox('files_read', params, about).files.tree(String(query['path']), Number(query['depth'])),
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
    changed('sandbox_file_written', call, about, (files) =>
      files.store(String(call.query['path']), call.body, call.query),
    ),
};

function changed<T>(kind: string, { params }: TestCall, about: RequestContext, change: (files: TestFiles) => T): T {
  const { files, record } = awakeSandbox('files_write', params, about);
  const result = change(files);
  note(about, kind, { kind: 'sandbox', id: record.id }, record);
  return result;
}
