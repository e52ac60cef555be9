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

/** Filters by project and status locally, as the API cannot: reads the whole list for them. */
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
    picked || endUser !== undefined ? 'no matching sandboxes' : 'no sandboxes; create one with berth sandbox create',
  );
  const isCut = picked ? shown.length < found.length : answer.hasMore === true;
  if (isCut && stdout.isTTY) out.note('more sandboxes exist: use --limit N');
}
