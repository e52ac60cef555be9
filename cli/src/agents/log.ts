// `berth agent log`: prints the replies behind a cursor; with --follow, those of the active turn.
import type { AgentReply, AgentSession } from '@berth/sdk';
import { AGENT_OUTPUT_PAGE } from '@berth/sdk/limits';
import type { CliContext } from '../program/context.ts';
import { EXIT, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { instant } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';
import { followTurn } from './follow.ts';
import { openSession, requireOperation } from './session.ts';
import { endText, exitCodeOf, replyLines } from './view.ts';

interface LogInput {
  after?: string;
  limit?: number;
  follow?: true;
}

const INDENT = '    ';

export async function showLog(context: CliContext, { args: [typed], options }: Input<LogInput>): Promise<number> {
  const { out } = context;
  const { after, limit, follow } = options;
  if (follow === true && limit !== undefined) throw new UsageError('--follow cannot be combined with --limit');
  const { session } = await openSession(context, typed);
  const isActive = session.data.turnId !== null && session.data.turnEndedAt === null;
  // A follower waits for the wake of a sleeping sandbox.
  if (follow !== true || !isActive) requireOperation(session, { operation: 'output', doing: 'read replies' });
  const log = new Log(context);
  if (follow === true && isActive) return await followLog(context, session, log, after);
  const { cursor, hasMore } = await readPages(context, session, log, { after, limit });
  if (log.count === 0 && !out.json) out.note(after === undefined ? 'no replies' : 'no replies behind the cursor');
  if (hasMore) out.note('more replies exist: use a higher --limit, or the cursor');
  else noteEnd(context, session);
  noteCursor(context, cursor);
  return EXIT.ok;
}

class Log {
  readonly #context: Pick<CliContext, 'out'>;
  count = 0;

  constructor(context: Pick<CliContext, 'out'>) {
    this.#context = context;
  }

  show(reply: AgentReply): void {
    const { out } = this.#context;
    if (this.count > 0) out.line();
    this.count += 1;
    const { seq, at, turnId } = reply;
    out.line(out.style('dim', plainText(`#${seq}  ${instant(at)}  ${turnId}`)));
    replyLines(reply, INDENT).forEach((line) => out.line(line));
  }
}

/** Prints pages to the end or the limit; with `--json`, each page as a JSON object. */
async function readPages(
  { out, signal }: CliContext,
  session: AgentSession,
  log: Log,
  { after, limit = Infinity }: { after: string | undefined; limit?: number | undefined },
): Promise<{ cursor: string | undefined; hasMore: boolean }> {
  let cursor = after;
  for (let left = limit; ;) {
    const query = { limit: Math.min(left, AGENT_OUTPUT_PAGE.max), ...(cursor === undefined ? {} : { after: cursor }) };
    const page = await session.output(query, { signal });
    if (out.json) out.object(page);
    else page.messages.forEach((reply) => log.show(reply));
    cursor = page.nextCursor;
    left -= page.messages.length;
    if (!page.hasMore || left <= 0) return { cursor, hasMore: page.hasMore };
  }
}

/** Resolves with the exit code of the turn's end. */
async function followLog(
  context: CliContext,
  session: AgentSession,
  log: Log,
  after: string | undefined,
): Promise<number> {
  const { out } = context;
  const turnId = session.data.turnId ?? '';
  // Replies of earlier turns.
  const { cursor } = session.can('output') ? await readPages(context, session, log, { after }) : { cursor: after };
  const turn = session.turn(turnId, { after: cursor });
  const show = (reply: AgentReply): void => (out.json ? out.objectLine(reply) : log.show(reply));
  try {
    return exitCodeOf(await followTurn(context, session, turn, { show, approvals: 'report' }));
  } finally {
    noteCursor(context, turn.cursor ?? cursor);
  }
}

/** Reports an end of the last turn that is no success: its replies do not show it. */
function noteEnd(
  { out }: Pick<CliContext, 'out'>,
  { data: { turnId, turnState, turnReason, turnEndedAt } }: AgentSession,
): void {
  if (turnId === null || turnState === null || turnEndedAt === null) return;
  const end = endText({ turnId, state: turnState, reason: turnReason });
  if (end !== null) out.note(end);
}

function noteCursor({ out }: Pick<CliContext, 'out'>, cursor: string | undefined): void {
  if (cursor !== undefined && !out.json) out.note(`continue with --after ${plainText(cursor)}`);
}
