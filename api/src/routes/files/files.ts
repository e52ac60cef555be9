// Wire format of files.
import { createFolder, deleteFile, moveFile, setFileMode } from '@berth/contract/files/changes.ts';
import { listFiles, readFile, snapshotFiles, statFile, writeFile } from '@berth/contract/files/files.ts';
import { createFileLink } from '@berth/contract/files/links.ts';
import { downloadFile, uploadFile } from '@berth/contract/files/transfers.ts';
import { watchFiles } from '@berth/contract/files/watch.ts';
import * as changes from '../../services/files/changes.ts';
import * as files from '../../services/files/files.ts';
import * as links from '../../services/files/links.ts';
import * as transfers from '../../services/files/transfers.ts';
import * as watch from '../../services/files/watch.ts';
import { bind } from '../../call/bind.ts';

export const fileRoutes = [
  bind(listFiles, (context, call) => files.listFiles(context, call, call.query)),
  bind(snapshotFiles, (context, call) => files.snapshotFiles(context, call, call.query)),
  bind(watchFiles, (context, call) => watch.watchFiles(context, call, { ...call.query, waitMs: call.holdMs })),
  bind(statFile, (context, call) => files.statFile(context, call, call.query)),
  bind(readFile, (context, call) => files.readFile(context, call, call.query)),
  bind(writeFile, (context, call) => files.writeFile(context, call, call.body)),
  bind(deleteFile, (context, call) => changes.deleteFile(context, call, call.query)),
  bind(moveFile, (context, call) => changes.moveFile(context, call, call.body)),
  bind(setFileMode, (context, call) => changes.setFileMode(context, call, call.body)),
  bind(createFolder, (context, call) => changes.createFolder(context, call, call.body)),
  bind(downloadFile, (context, call) => transfers.downloadFile(context, { ...call, route: downloadFile }, call.query)),
  bind(uploadFile, (context, call) =>
    transfers.uploadFile(context, { ...call, route: uploadFile }, call.query, call.upload),
  ),
  bind(createFileLink, async (context, call) => ({ link: await links.createFileLink(context, call, call.body) })),
];
