// `berth ps`.
import type { ProcessData } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import type { Input } from '../program/command-spec.ts';
import type { Column } from '../output/table.ts';
import { since } from '../output/time.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { statusStyle, statusText } from './view.ts';
import { processesOf } from './find.ts';

interface ListInput {
  all?: true;
  quiet?: true;
}

const COLUMNS: readonly Column<ProcessData>[] = [
  { title: 'id', value: ({ id }) => id, whole: true },
  { title: 'name', value: ({ name }) => name, least: 6, optional: true },
  { title: 'status', value: statusText, style: statusStyle, least: 13 },
  { title: 'started', value: ({ startedAt }) => since(startedAt), least: 8, optional: true },
  { title: 'command', value: ({ command }) => command, least: 10 },
];

export async function listProcesses(context: CliContext, { args: [typed], options }: Input<ListInput>): Promise<void> {
  const { out, signal } = context;
  const id = await findSandbox(context, typed);
  const known = (await (await processesOf(context, id)).list({ signal })).map(({ data }) => data);
  const processes = options.all === true ? known : known.filter(({ status }) => status === 'running');
  if (out.json) return out.object({ processes });
  if (options.quiet === true) {
    processes.forEach((process) => out.line(process.id));
    return;
  }
  const empty =
    known.length === 0
      ? `no processes; start one with berth exec -d ${id} -- COMMAND`
      : `no process runs; berth ps -a ${id} lists those that ended`;
  out.table(COLUMNS, processes, empty);
}
