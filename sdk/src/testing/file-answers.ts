// File handlers of the test server, following the contract.
import { note, type Answers, type RequestContext } from './answering.ts';
import { bytesOf, type TestFiles } from './files/files.ts';
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
  downloadFile: ({ params, query }, about) =>
    awakeSandbox('files_read', params, about).files.bytes(String(query['path'])),
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
