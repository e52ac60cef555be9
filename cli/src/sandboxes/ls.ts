import type { api } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { SANDBOX_COLUMNS } from './view.ts';
import type { Input } from '../program/command-spec.ts';
import { watchSandboxes } from './watch.ts';

interface ListInput {
  endUser?: string;
  project?: string;
  status?: ListedStatus[];
  search?: string;
  metadata?: Record<string, string>;
  sort?: Sort;
  limit?: number;
  quiet?: boolean;
  watch?: boolean;
  interval?: number;
}

/** Pause between two requests of --watch. */
const INTERVAL_SECONDS = 2;

type Query = NonNullable<api.ListSandboxesData['query']>;
type ListedStatus = NonNullable<Query['status']>[number];
type Sort = NonNullable<Query['sort']>;

export async function listSandboxes(context: CliContext, { options }: Input<ListInput>): Promise<number | void> {
  const { connect, out, signal, stdout } = context;
  const { endUser, project, search, quiet, sort, limit, watch, interval, status, metadata } = options;
  if (watch === true && quiet === true) throw new UsageError('--watch cannot be combined with --quiet');
  if (watch !== true && interval !== undefined) throw new UsageError('--interval requires --watch');
  const { berth, orgId } = await connect();
  const filter = {
    ...(status === undefined ? {} : { status }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(endUser === undefined ? {} : { endUserId: endUser }),
    ...(project === undefined ? {} : { projectId: project }),
    ...(search === undefined ? {} : { q: search }),
  };
  const query = { ...filter, ...(sort === undefined ? {} : { sort }), ...(limit === undefined ? {} : { limit }) };
  const path = { orgId: await orgId() };
  if (watch === true) {
    return await watchSandboxes(context, {
      read: async () => (await berth.raw.listSandboxes({ path, query, signal })).sandboxes,
      intervalSeconds: interval ?? INTERVAL_SECONDS,
    });
  }
  const answer = await berth.raw.listSandboxes({ path, query, signal });
  if (out.json) return out.object(answer);
  const shown = answer.sandboxes;
  if (quiet === true) {
    shown.forEach(({ id }) => out.line(id));
    return;
  }
  out.table(
    SANDBOX_COLUMNS,
    shown,
    Object.keys(filter).length > 0 ? 'no matching sandboxes' : 'no sandboxes; create one with berth sandbox create',
  );
  if (answer.hasMore === true && stdout.isTTY) out.note('more sandboxes exist: use --limit N');
}
