// Turns of Codex' threads: their replies, approvals and ends, from the messages of its app-server.
import { ActiveRun } from '../active-run.ts';
import { jsonOf, listOf, textOf, type Json } from '../agent-process.ts';
import type { DriverEvents, TurnEnd } from '../driver.ts';
import { OpenPrompts } from '../open-prompts.ts';
import { approvalOf } from './approvals.ts';
import type { Rpc } from './rpc.ts';

/** File changes in progress whose text is kept for an approval. */
const OPEN_CHANGES = 64;

type Approval = NonNullable<ReturnType<typeof approvalOf>>;

export class CodexTurns {
  readonly #rpc: Rpc;
  readonly #events: DriverEvents;
  readonly #prompts: OpenPrompts;
  readonly #changes = new Map<string, Json>();
  #active: { run: ActiveRun; threadId: string } | null = null;
  /** Background terminals of earlier turns: an interrupt spares them. */
  #earlier: ReadonlySet<string> = new Set();

  constructor(rpc: Rpc, events: DriverEvents) {
    this.#rpc = rpc;
    this.#events = events;
    this.#prompts = new OpenPrompts(events);
  }

  /** Thread of the active turn. */
  get threadId(): string | null {
    return this.#active?.threadId ?? null;
  }

  /** True until Codex has named the active turn. */
  get isBeginning(): boolean {
    return this.#active !== null && this.#active.run.nativeId === null;
  }

  /** No further approval can be asked for. */
  get isFull(): boolean {
    return this.#prompts.isFull;
  }

  /** Sends a message as a turn of the thread. `settings` apply to it and to later turns. */
  async run(threadId: string, turnId: string, text: string, settings: Json = {}): Promise<TurnEnd> {
    const run = new ActiveRun();
    this.#active = { run, threadId };
    try {
      this.#earlier = new Set(await this.#terminals(threadId));
      const { turn } = await this.#rpc.call('turn/start', {
        ...{ ...settings, threadId, clientUserMessageId: turnId },
        input: [{ type: 'text', text, text_elements: [] }],
      });
      this.#begun(textOf(jsonOf(turn)['id']));
    } catch (error) {
      run.end({ state: 'failed', message: String(error) });
    }
    return await this.#ended(run, threadId, true);
  }

  /** Follows a turn that a person begins. `nativeId` is null before Codex has named it. */
  async follow(threadId: string, nativeId: string | null): Promise<TurnEnd> {
    const run = new ActiveRun();
    run.nativeId = nativeId;
    this.#active = { run, threadId };
    this.#earlier = new Set();
    void this.#terminals(threadId).then(
      (earlier) => (this.#earlier = new Set(earlier)),
      () => undefined,
    );
    // A person who interrupts it in the program keeps its commands, as ever in Codex.
    return await this.#ended(run, threadId, false);
  }

  async interrupt(): Promise<void> {
    if (this.#active === null) return;
    this.#active.run.isCanceled = true;
    await this.#interruptActive();
  }

  /** Ends the active turn as failed. */
  fail(message: string): void {
    this.#active?.run.end({ state: 'failed', message });
  }

  withdrawAll(): void {
    this.#prompts.withdrawAll();
  }

  withdraw(id: string | number): void {
    this.#prompts.withdraw(id);
  }

  notified(method: string, params: Json): void {
    // Other threads: side calls such as for titles.
    if (this.#active === null || params['threadId'] !== this.#active.threadId) return;
    const { run } = this.#active;
    this.#events.sign();
    const item = jsonOf(params['item']);
    const turn = jsonOf(params['turn']);
    if (method === 'turn/started') this.#begun(textOf(turn['id']));
    if (method === 'item/started' && item['type'] === 'fileChange' && this.#changes.size < OPEN_CHANGES)
      this.#changes.set(textOf(item['id']), item);

    if (method === 'item/completed') {
      this.#changes.delete(textOf(item['id']));
      const text = item['type'] === 'agentMessage' ? textOf(item['text']) : '';
      if (text !== '') this.#events.reply(text);
    }
    if (method === 'serverRequest/resolved') this.withdraw(params['requestId'] as string | number);
    if (method === 'turn/completed' && (run.nativeId === null || turn['id'] === run.nativeId))
      run.end(endOf(run, turn));
  }

  /** Approval that a request asks for, or null. */
  approvalOf(method: string, params: Json): Approval | null {
    return approvalOf(method, params, this.#changes);
  }

  /** Asks for an approval in the active turn. `respond` is called once at most. */
  ask(id: string | number, approval: Approval, respond: (result: Json) => void): void {
    const run = this.#active?.run;
    if (run === undefined) return respond(approval.respond('decline'));
    this.#events.sign();
    this.#prompts.ask(id, approval.prompt, (decision) => {
      respond(approval.respond(decision));
      if (decision !== 'cancel') return;
      run.isCanceled = true;
      if (!approval.endsTurn) void this.#interruptActive();
    });
  }

  async #ended(run: ActiveRun, threadId: string, isOurs: boolean): Promise<TurnEnd> {
    const end = await run.ended;
    this.withdrawAll();
    this.#changes.clear();
    // Codex leaves the commands of an interrupted turn running.
    if (end.state === 'canceled' && (isOurs || run.isCanceled)) await this.#endCommands(threadId);
    this.#active = null;
    return end;
  }

  #begun(nativeId: string): void {
    const run = this.#active?.run;
    if (run === undefined || run.nativeId !== null) return;
    run.nativeId = nativeId;
    if (run.isCanceled) void this.#interruptActive();
  }

  async #interruptActive(): Promise<void> {
    if (this.#active === null) return;
    const { run, threadId } = this.#active;
    if (run.nativeId === null) return;
    // Fails if the turn has ended meanwhile, or the process: both end the run.
    await this.#rpc.call('turn/interrupt', { threadId, turnId: run.nativeId }).catch(() => undefined);
  }

  async #terminals(threadId: string): Promise<string[]> {
    const { data } = await this.#rpc.call('thread/backgroundTerminals/list', { threadId });
    return listOf(data).map((terminal) => textOf(jsonOf(terminal)['processId']));
  }

  async #endCommands(threadId: string): Promise<void> {
    const processIds = await this.#terminals(threadId).catch(() => []);
    for (const processId of processIds.filter((id) => !this.#earlier.has(id))) {
      const call = { threadId, processId };
      await this.#rpc.call('thread/backgroundTerminals/terminate', call).catch(() => undefined);
    }
  }
}

function endOf(run: ActiveRun, turn: Json): TurnEnd {
  if (turn['status'] === 'completed') return { state: 'completed' };
  if (turn['status'] === 'interrupted' || run.isCanceled) return { state: 'canceled' };
  return { state: 'failed', message: textOf(jsonOf(turn['error'])['message']) };
}
