// `berth sandbox ls`.
import type { CliContext } from '../program/context.ts';
import { since } from '../output/time.ts';
import { sizeOf, sizeText, statusStyle } from './view.ts';
import type { Input } from '../program/command-spec.ts';

interface ListInput {
  endUser?: string;
  project?: string;
  status?: string;
  limit?: number;
  quiet?: boolean;
}

/**
 * Project and status are no filters of the API: with one of them the list is read whole and picked
 * from here.
 */
export async function listSandboxes(context: CliContext, { options }: Input<ListInput>): Promise<void> {
  const { connect, out, signal, stdout } = context;
  const { endUser, project, status, limit, quiet } = options;
  const { berth, orgId } = await connect();
  const picked = project !== undefined || status !== undefined;
  const answer = await berth.raw.listSandboxes({
    path: { orgId: await orgId() },
    query: {
      ...(endUser === undefined ? {} : { endUserId: endUser }),
      ...(picked || limit === undefined ? {} : { limit }),
    },
    signal,
  });
  const found = answer.sandboxes.filter(
    (sandbox) =>
      (project === undefined || sandbox.projectId === project) && (status === undefined || sandbox.status === status),
  );
  const shown = picked ? found.slice(0, limit) : found;
  if (out.json) {
    out.object(picked ? { sandboxes: shown } : answer);
    return;
  }
  if (quiet === true) {
    shown.forEach(({ id }) => out.line(id));
    return;
  }
  out.table(
    [
      { title: 'id', value: ({ id }) => id, whole: true },
      { title: 'name', value: ({ name }) => name, least: 8 },
      {
        title: 'status',
        value: (sandbox) => sandbox.status,
        style: (sandbox) => statusStyle(sandbox.status),
        least: 12,
      },
      { title: 'size', value: (sandbox) => sizeText(sizeOf(sandbox)), optional: true },
      { title: 'end user', value: ({ endUserId }) => endUserId, least: 8, optional: true },
      { title: 'created', value: ({ createdAt }) => since(createdAt), least: 9 },
    ],
    shown,
    picked || endUser !== undefined ? 'no such sandboxes' : 'no sandboxes; berth sandbox create makes one',
  );
  const isCut = picked ? shown.length < found.length : answer.hasMore === true;
  if (isCut && stdout.isTTY) out.note('there are more: --limit says how many are shown');
}
