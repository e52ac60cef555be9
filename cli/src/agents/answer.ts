// `berth agent answer` and `interrupt`.
import type { AgentDecision, AgentSession } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { canPrompt } from '../interaction/prompt.ts';
import { CliFailure, EXIT, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import type { Input } from '../program/command-spec.ts';
import { askForDecision } from './approval.ts';
import { openSession, requireOperation } from './session.ts';
import { turnText } from './view.ts';

export async function answer(
  context: CliContext,
  { args: [typed, request], options: { decision } }: Input<{ decision?: AgentDecision }>,
): Promise<void> {
  const { out, signal } = context;
  if (decision !== undefined && request === undefined) {
    throw new UsageError('--decision requires the request id, so that no other approval is answered', {
      remedy: 'berth agent get SESSION --full shows the pending approval and its request id',
    });
  }
  if (decision === undefined && (out.json || !canPrompt(context))) {
    throw new UsageError('no decision given, and stdin and stderr are not a terminal', {
      remedy: 'berth agent answer SESSION REQUEST --decision accept|decline|cancel',
    });
  }
  const { session } = await openSession(context, typed);
  requireOperation(session, { operation: 'approvals', doing: 'answer' });
  const pending = session.data.pendingInput?.requestId;
  if (decision !== undefined) {
    const requestId = requestIdOf(request ?? '', pending);
    const answered = await session.answer(requestId, decision, { signal });
    const repeated = answered.repeated ? ' (repeated)' : '';
    if (out.json) out.object(answered);
    else out.line(`${plainText(String(answered.requestId))} ${answered.decision}${repeated}`);
    return;
  }
  if (pending === undefined) throw new CliFailure('the session waits for no answer');
  if (request !== undefined && requestIdOf(request, pending) !== pending) {
    throw new CliFailure(`the approval ${plainText(request)} is not pending`, {
      remedy: `the pending one is ${plainText(String(pending))}`,
    });
  }
  const taken = await askForDecision(context, session, { requestId: pending });
  if (taken === null) throw new CliFailure('nothing was answered');
  out.line(`${plainText(String(pending))} ${taken}`);
}

/** Ids are compared by type and value: takes the type of the pending id if the text is the same. */
function requestIdOf(typed: string, pending: number | string | undefined): number | string {
  if (pending !== undefined && String(pending) === typed) return pending;
  return /^(?:0|-?[1-9]\d{0,14})$/.test(typed) ? Number(typed) : typed;
}

export async function interrupt(
  context: CliContext,
  { args: [typed], options: { wait } }: Input<{ wait: boolean }>,
): Promise<number> {
  const { out, signal } = context;
  const { session } = await openSession(context, typed);
  requireOperation(session, { operation: 'interruption', doing: 'interrupt' });
  requireActive(session);
  const turn = await session.interrupt({ signal });
  if (!wait) {
    if (out.json) out.object({ turnId: turn.id });
    else out.line(`${turn.id} interrupting`);
    return EXIT.ok;
  }
  const end = await out.step('interrupting', async () => await turn.done({ signal }));
  if (out.json) out.object(end);
  else out.line(plainText(`${turn.id} ${turnText(end)}`));
  return EXIT.ok;
}

function requireActive({ id, data: { turnId, turnEndedAt } }: AgentSession): void {
  if (turnId !== null && turnEndedAt === null) return;
  throw new CliFailure('cannot interrupt: no turn is active', { remedy: `berth agent get ${id} shows the last turns` });
}
