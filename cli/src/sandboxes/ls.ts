import type { api } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { since } from '../output/time.ts';
import { sizeOf, sizeText, statusStyle } from './view.ts';
import type { Input } from '../program/command-spec.ts';

interface ListInput {
  endUser?: string;
  project?: string;
  status?: ListedStatus[];
  search?: string;
  metadata?: Record<string, string>;
  sort?: Sort;
  limit?: number;
  quiet?: boolean;
}

type Query = NonNullable<api.ListSandboxesData['query']>;
type ListedStatus = NonNullable<Query['status']>[number];
type Sort = NonNullable<Query['sort']>;

export async function listSandboxes(context: CliContext, { options }: Input<ListInput>): Promise<void> {
  const { connect, out, signal, stdout } = context;
  const { endUser, project, search, quiet, sort, limit, ...others } = options;
  const { berth, orgId } = await connect();
  const filter = {
    ...others,
    ...(endUser === undefined ? {} : { endUserId: endUser }),
    ...(project === undefined ? {} : { projectId: project }),
    ...(search === undefined ? {} : { q: search }),
  };
  const query = { ...filter, ...(sort === undefined ? {} : { sort }), ...(limit === undefined ? {} : { limit }) };
  const answer = await berth.raw.listSandboxes({ path: { orgId: await orgId() }, query, signal });
  if (out.json) return out.object(answer);
  const shown = answer.sandboxes;
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
    Object.keys(filter).length > 0 ? 'no matching sandboxes' : 'no sandboxes; create one with berth sandbox create',
  );
  if (answer.hasMore === true && stdout.isTTY) out.note('more sandboxes exist: use --limit N');
}
