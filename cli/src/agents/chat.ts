// `berth agent chat`: a conversation in a terminal.
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { BerthError, type AgentReply, type AgentSession, type AgentTurn, type Berth } from '@berth/sdk';
import type { CliContext } from '../program/context.ts';
import { canPrompt, confirm } from '../interaction/prompt.ts';
import { MessageLine } from '../interaction/message-line.ts';
import { CliFailure, EXIT, EXIT_BY_SIGNAL, UsageError } from '../output/failure.ts';
import { plainText } from '../output/plain-text.ts';
import { reportOf } from '../output/report.ts';
import { findSandbox } from '../service/find-sandbox.ts';
import type { Input } from '../program/command-spec.ts';
import { followTurn } from './follow.ts';
import { isOfUnknownFate, resendRemedy } from './send.ts';
import { openSession, unavailable } from './session.ts';
import { startIn } from './start.ts';
import { replyLines } from './view.ts';

/** Between two sends of a message whose delivery is unknown. */
const RESEND_PAUSE_MS = 2_000;

export async function chat(
  context: CliContext,
  { args: [typed = ''], options }: Input<{ new?: true }>,
): Promise<number> {
  if (!canPrompt(context)) {
    throw new UsageError('a chat requires a terminal for stdin and stderr', {
      remedy: 'berth agent send SESSION --wait sends a message and prints the replies',
    });
  }
  const { berth, session } = typed.startsWith('ags_')
    ? await openSession(context, typed)
    : await sessionIn(context, await findSandbox(context, typed), options.new === true);
  if (['gone', 'unsupported'].includes(session.data.communication.status)) {
    const { reason, remedy } = unavailable(session.data);
    throw new CliFailure(`cannot talk to the agent: ${reason}`, { remedy });
  }
  return await new Chat(context, berth, session).run();
}

/** The newest managed session of the sandbox, or a new one. */
async function sessionIn(
  context: CliContext,
  id: string,
  isNew: boolean,
): Promise<{ berth: Berth; session: AgentSession }> {
  const { connect, signal } = context;
  const { berth } = await connect();
  const { sessions } = isNew ? { sessions: [] } : await berth.agents.list({ sandboxId: id, limit: 2 }, { signal });
  // A sandbox has at most one terminal, whose conversation is that of the people at it.
  const newest = sessions.find(({ data }) => data.surface !== 'terminal');
  if (newest !== undefined && newest.data.communication.status !== 'gone') return { berth, session: newest };
  return { berth, session: await startIn(context, berth.agents.start(id, { signal }), id) };
}

/** Phase of the chat: a signal acts on it. */
type Phase = 'idle' | 'sending' | 'turn' | 'interrupting';

class Chat {
  readonly #context: CliContext;
  readonly #berth: Berth;
  readonly #session: AgentSession;
  readonly #line: MessageLine;
  readonly #leaving = new AbortController();
  /** Aborts at a signal that leaves. */
  readonly #signal: AbortSignal;
  #phase: Phase = 'idle';
  /** Ctrl-C while a message was on its way. */
  #interruptsNext = false;

  constructor(context: CliContext, berth: Berth, session: AgentSession) {
    this.#signal = AbortSignal.any([context.signal, this.#leaving.signal]);
    this.#context = { ...context, signal: this.#signal };
    this.#berth = berth;
    this.#session = session;
    this.#line = new MessageLine(context);
  }

  async run(): Promise<number> {
    const { id, data } = this.#session;
    const release = this.#context.takeSignals((name) => this.#onSignal(name));
    try {
      this.#note(`${data.agentLabel} in ${data.sandboxId}, session ${id}`);
      this.#note('Ctrl-C interrupts a turn, Ctrl-D leaves. Pasted lines are one message.');
      await this.#session.refresh({ signal: this.#signal });
      await this.#followActive();
      return await this.#converse();
    } catch (error) {
      if (this.#leaving.signal.aborted) throw this.#leaving.signal.reason;
      if (!(error instanceof CliFailure) || error.exitCode !== EXIT.needsYou) throw error;
      this.#note(`${error.message}; ${error.remedy}`);
      return EXIT.ok;
    } finally {
      release();
    }
  }

  async #converse(): Promise<number> {
    let draft = '';
    for (let interrupts = 0; ;) {
      const read = await this.#line.read('> ', draft, this.#signal);
      if (read === 'closed') {
        this.#note('');
        return EXIT.ok;
      }
      if (read === 'interrupted') {
        interrupts += 1;
        this.#note('');
        if (interrupts > 1) return EXIT_BY_SIGNAL.SIGINT;
        this.#note('Ctrl-C again or Ctrl-D leaves');
        continue;
      }
      interrupts = 0;
      draft = read.text.trim() === '' ? '' : await this.#exchange(read.text);
    }
  }

  /** Resolves with the text if it was not delivered, for another try. */
  async #exchange(text: string): Promise<string> {
    this.#interruptsNext = false;
    const turn = await this.#deliver(text);
    if (turn === null) return text;
    const isDelivered = await this.#follow(turn);
    if (!isDelivered) this.#note('the message is in the input again');
    return isDelivered ? '' : text;
  }

  /**
   * Sends the message until its turn is known; all sends have one key, so that it runs at most
   * once. Null: it was refused.
   */
  async #deliver(text: string): Promise<AgentTurn | null> {
    const requestKey = randomUUID();
    let isUnknown = false;
    try {
      for (;;) {
        this.#phase = 'sending';
        const sent = await this.#session.send(text, { requestKey, signal: this.#signal }).catch(asRefusal);
        if (!(sent instanceof BerthError)) return sent;
        this.#signal.throwIfAborted();
        if (sent.code === 'message_delivery_uncertain' && sent.turnId !== undefined)
          return this.#session.turn(sent.turnId);
        if (isOfUnknownFate(sent) || sent.retryable) {
          if (!isUnknown) this.#note(`${sent.message}; sending again with the same key: it runs at most once`);
          isUnknown = true;
          await delay(Math.max(RESEND_PAUSE_MS, (sent.retryAfter ?? 0) * 1_000), undefined, { signal: this.#signal });
        } else {
          this.#phase = 'idle';
          if (!(await this.#resolve(sent))) return null;
        }
      }
    } catch (error) {
      if (isUnknown || this.#phase === 'sending')
        this.#note(`the message may have been delivered; ${resendRemedy(this.#session.id, requestKey)}`);
      throw error;
    } finally {
      this.#phase = 'idle';
    }
  }

  /** Resolves with whether to send again. */
  async #resolve(error: BerthError): Promise<boolean> {
    const { id, data } = this.#session;
    switch (error.code) {
      case 'agent_turn_active':
        this.#note('another turn is active; the message was not sent');
        await this.#session.refresh({ signal: this.#signal });
        await this.#followActive();
        return false;
      case 'agent_bridge_stopped':
        await this.#session.refresh({ signal: this.#signal });
        this.#note(`the message was not sent: ${unavailable(this.#session.data).reason}`);
        return await this.#offer('Recover the session now?', `berth agent recover ${id}`, async () => {
          await this.#session.recover({ signal: this.#signal });
        });
      case 'sandbox_state_conflict':
        this.#note(`the message was not sent: ${error.message}`);
        return await this.#offer('Wake the sandbox now?', `berth sandbox wake ${data.sandboxId}`, async () => {
          const sandbox = await this.#berth.sandboxes.get(data.sandboxId, { signal: this.#signal });
          await sandbox.wake({ signal: this.#signal });
        });
      default:
        this.#report(error);
        if (error.status === 401) throw error;
        return false;
    }
  }

  /** Resolves with whether the remedy was applied. */
  async #offer(question: string, command: string, remedy: () => Promise<void>): Promise<boolean> {
    const { stdin, stderr, out } = this.#context;
    if (!(await confirm({ stdin, stderr, signal: this.#signal }, question))) {
      this.#note(`later: ${command}`);
      return false;
    }
    try {
      await out.step(command, remedy);
      return true;
    } catch (error) {
      if (!(error instanceof BerthError)) throw error;
      this.#report(error);
      return false;
    }
  }

  async #followActive(): Promise<void> {
    const { turnId, turnEndedAt } = this.#session.data;
    if (turnId === null || turnEndedAt !== null) return;
    this.#note(`following the active turn ${turnId}`);
    await this.#follow(this.#session.turn(turnId));
  }

  /** Prints the turn to its end, through outages. Resolves with whether it was delivered. */
  async #follow(turn: AgentTurn): Promise<boolean> {
    this.#phase = 'turn';
    if (this.#interruptsNext) this.#interrupt();
    try {
      for (;;) {
        try {
          const show = (reply: AgentReply): void => this.#show(reply);
          const { state, reason } = await followTurn(this.#context, this.#session, turn, { show, approvals: 'ask' });
          if (state === 'failed') await this.#explainStop();
          return reason !== 'not_delivered';
        } catch (error) {
          const passes =
            error instanceof BerthError && !this.#signal.aborted && (error.retryable || error.code === 'timeout');
          if (!passes) throw error;
          this.#note('still no response; the turn continues');
        }
      }
    } finally {
      this.#phase = 'idle';
    }
  }

  async #explainStop(): Promise<void> {
    await this.#session.refresh({ signal: this.#signal });
    if (this.#session.data.communication.status !== 'stopped') return;
    const { reason, remedy } = unavailable(this.#session.data);
    this.#note(`${reason}; ${remedy}, or send a message`);
  }

  #onSignal(name: NodeJS.Signals): void {
    if (name === 'SIGUSR1' || name === 'SIGUSR2') return;
    if (name === 'SIGINT' && this.#phase === 'turn') {
      this.#interrupt();
    } else if (name === 'SIGINT' && this.#phase === 'sending' && !this.#interruptsNext) {
      this.#interruptsNext = true;
      this.#note('interrupting as soon as the message was taken; Ctrl-C again leaves');
    } else {
      this.#leave(name);
    }
  }

  #leave(name: NodeJS.Signals): void {
    const exitCode = (EXIT_BY_SIGNAL as Readonly<Record<string, number>>)[name] ?? EXIT.failed;
    this.#leaving.abort(new CliFailure(`stopped by ${name}`, { exitCode }));
  }

  #interrupt(): void {
    this.#phase = 'interrupting';
    this.#interruptsNext = false;
    this.#note('interrupting; Ctrl-C again leaves');
    this.#session.interrupt({ signal: this.#signal }).catch((error: unknown) => {
      const isOver =
        error instanceof BerthError && ['agent_turn_not_active', 'agent_bridge_stopped'].includes(error.code);
      if (this.#signal.aborted || isOver) return;
      this.#report(error);
    });
  }

  #show(reply: AgentReply): void {
    const { out, stdout } = this.#context;
    const lines = replyLines(reply, stdout.isTTY ? '  ' : '');
    lines.forEach((line) => out.line(line));
    out.line();
  }

  /** On stderr. */
  #note(text: string): void {
    const { out } = this.#context;
    out.hint(out.style('dim', plainText(text), 'stderr'));
  }

  #report(error: unknown): void {
    reportOf(error, { call: this.#context.call }).lines.forEach((line) => this.#context.out.hint(line));
  }
}

/** Returns the refusal of a call; throws anything else. */
function asRefusal(error: unknown): BerthError {
  if (error instanceof BerthError) return error;
  throw error;
}
