// `berth agent ls` and `get`.
import type { AgentSessionData } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Column } from '../output/table.ts';
import { since } from '../output/time.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import { checkResourceId } from '../service/resource-id.ts';
import type { Input } from '../program/command-spec.ts';
import { approvalLines } from './approval-text.ts';
import { openSession } from './session.ts';
import { sessionFields, stateStyle, turnText } from './view.ts';

interface ListInput {
  org?: string;
  project?: string;
  sandbox?: string;
  needsYou?: true;
  limit?: number;
  after?: string;
  all?: true;
  quiet?: true;
}

const COLUMNS: readonly Column<AgentSessionData>[] = [
  { title: 'id', value: ({ id }) => id, whole: true },
  { title: 'agent', value: ({ agentLabel }) => agentLabel, least: 6 },
  {
    title: 'status',
    value: ({ communication }) => communication.status,
    style: ({ communication }) => stateStyle(communication.status),
    least: 11,
  },
  {
    title: 'turn',
    value: ({ turnState, turnReason }) => turnState && turnText({ state: turnState, reason: turnReason }),
    style: ({ turnState }) => stateStyle(turnState),
    least: 9,
    optional: true,
  },
  { title: 'sandbox', value: ({ sandboxId: id }) => id, whole: true, optional: true },
  { title: 'end user', value: ({ endUserId }) => endUserId, least: 8, optional: true },
  { title: 'updated', value: ({ updatedAt }) => since(updatedAt), least: 8 },
];

/** Lists sessions of all orgs of the credential, unless filtered. */
export async function listSessions(context: CliContext, { options }: Input<ListInput>): Promise<void> {
  const { connect, out, signal } = context;
  const { org, project, sandbox, needsYou, limit, all, quiet } = options;
  if (all === true && limit !== undefined) throw new UsageError('--all cannot be combined with --limit');
  const filter = {
    ...(org === undefined ? {} : { orgId: checkResourceId('org', org) }),
    ...(project === undefined ? {} : { projectId: checkResourceId('project', project) }),
    ...(sandbox === undefined ? {} : { sandboxId: await findSandbox(context, sandbox) }),
    ...(needsYou === true ? { needsYou: 'true' as const } : {}),
    ...(limit === undefined ? {} : { limit }),
  };
  const { berth } = await connect();
  for (let { after } = options, isFirst = true; ; isFirst = false) {
    const query = after === undefined ? filter : { ...filter, after };
    const page = await berth.raw.listAgentSessions({ query, signal });
    if (out.json) out.object(page);
    else if (quiet === true) page.sessions.forEach(({ id }) => out.line(id));
    else out.table(COLUMNS, page.sessions, isFirst ? emptyText(filter) : 'no further sessions', { titles: isFirst });
    if (!page.hasMore || page.nextCursor === null) return;
    after = page.nextCursor;
    if (all === true) continue;
    out.note(`more sessions exist: use --all, or --after ${plainText(after)}`);
    return;
  }
}

function emptyText(filter: object): string {
  return Object.keys(filter).some((name) => name !== 'limit')
    ? 'no matching agent sessions'
    : 'no agent sessions; start one with berth agent start SANDBOX';
}

export async function getSession(
  context: CliContext,
  { args: [typed], options: { full } }: Input<{ full?: true }>,
): Promise<void> {
  const { out } = context;
  const { session } = await openSession(context, typed, full === true ? { detail: 'full' } : {});
  const { data } = session;
  if (out.json) {
    out.object(data);
    return;
  }
  out.fields(sessionFields(data));
  const { pendingInput, recentTurns = [] } = data;
  if (pendingInput !== null) {
    out.line();
    approvalLines(pendingInput, out.columns).forEach((line) => out.line(line));
    if (pendingInput.truncated && full !== true) out.note('--full shows up to 128 KiB of the detail');
    out.hint(`answer it with berth agent answer ${session.id}`);
  }
  if (recentTurns.length === 0) return;
  out.line();
  out.table(
    [
      { title: 'turn', value: ({ turnId }) => turnId, whole: true },
      { title: 'state', value: (turn) => turnText(turn), style: ({ state }) => stateStyle(state), least: 9 },
      { title: 'started', value: ({ startedAt }) => since(startedAt), least: 8 },
      { title: 'ended', value: ({ endedAt }) => endedAt && since(endedAt), least: 8, optional: true },
    ],
    recentTurns,
    '',
  );
}
