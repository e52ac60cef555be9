// Wire format of files.
import { listFiles, readFile, snapshotFiles, writeFile } from '@berth/contract/files/files.ts';
import * as files from '../../services/files/files.ts';
import { bind } from '../../call/bind.ts';

export const fileRoutes = [
  bind(listFiles, (context, call) => files.listFiles(context, call, call.query)),
  bind(snapshotFiles, (context, call) => files.snapshotFiles(context, call, call.query)),
  bind(readFile, (context, call) => files.readFile(context, call, call.query)),
  bind(writeFile, (context, call) => files.writeFile(context, call, call.body)),
];
