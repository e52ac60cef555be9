// Claude Code, by the control protocol of its JSON lines on standard streams.
import { ActiveRun } from '../active-run.ts';
import { AgentProcess, jsonOf, listOf, programOf, textOf, type Json } from '../agent-process.ts';
import { DriverRefusal, type AgentDriver, type DriverStart, type StartDriver, type TurnEnd } from '../driver.ts';
import { OpenPrompts } from '../open-prompts.ts';
import { promptOf, questionResponse, responseTo } from './approvals.ts';
import { claudeArguments, claudeEnvironment } from './program.ts';

export const startClaude: StartDriver = async (start) => {
  const driver = new ClaudeDriver(start, programOf(start, 'claude'));
  const abort = (): void => void driver.close();
  start.signal.addEventListener('abort', abort, { once: true });
  try {
    start.signal.throwIfAborted();
    await driver.open();
    return driver;
  } catch (error) {
    await driver.close();
    start.signal.throwIfAborted();
    throw error instanceof DriverRefusal ? error : new DriverRefusal('agent_not_ready', String(error));
  } finally {
    start.signal.removeEventListener('abort', abort);
  }
};

class ClaudeDriver implements AgentDriver {
  readonly savedId: string;
  readonly #start: DriverStart;
  readonly #process: AgentProcess;
  readonly #prompts: OpenPrompts;
  readonly #calls = new Map<string, { resolve: (response: Json) => void; reject: (error: Error) => void }>();
  #run: ActiveRun | null = null;
  #endReason: string | null = null;
  #isReady = false;

  constructor(start: DriverStart, program: string) {
    this.#start = start;
    this.savedId = start.savedId ?? crypto.randomUUID();
    this.#prompts = new OpenPrompts(start.events);
    const conversation = { id: this.savedId, isNew: start.savedId === null };
    const child = start.spawn(program, claudeArguments(conversation), claudeEnvironment(start.gatewayUrl));
    this.#process = new AgentProcess(child, {
      message: (message) => this.#received(message),
      exited: (reason) => this.#exited(reason),
    });
  }

  get pid(): number {
    return this.#process.pid;
  }

  async open(): Promise<void> {
    const { account } = await this.#call({ subtype: 'initialize', promptSuggestions: false });
    const { tokenSource, apiKeySource } = jsonOf(account);
    if (tokenSource === 'none' && apiKeySource === undefined)
      throw new DriverRefusal('agent_not_signed_in', 'Claude Code is not signed in');

    this.#isReady = true;
  }

  async run(_turnId: string, text: string): Promise<TurnEnd> {
    const run = new ActiveRun();
    run.nativeId = crypto.randomUUID();
    this.#run = run;
    this.#process.send({
      ...{ type: 'user', uuid: run.nativeId, session_id: this.savedId, parent_tool_use_id: null },
      message: { role: 'user', content: [{ type: 'text', text }] },
    });
    if (this.#endReason !== null) run.end({ state: 'failed', message: this.#endReason });
    const end = await run.ended;
    this.#prompts.withdrawAll();
    this.#run = null;
    return end;
  }

  async interrupt(): Promise<void> {
    if (this.#run === null) return;
    this.#run.isCanceled = true;
    // Fails if the process ends; that ends the run.
    await this.#call({ subtype: 'interrupt' }).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.#prompts.withdrawAll();
    await this.#process.close();
    this.#end('the agent was closed');
  }

  #call(request: Json): Promise<Json> {
    if (this.#endReason !== null) return Promise.reject(new Error(this.#endReason));
    const id = crypto.randomUUID();
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    this.#calls.set(id, { resolve, reject });
    this.#process.send({ type: 'control_request', request_id: id, request });
    return promise;
  }

  #received(message: Json): void {
    const run = this.#run;
    switch (message['type']) {
      case 'control_response':
        return this.#responded(jsonOf(message['response']));
      case 'control_request':
        return this.#requested(textOf(message['request_id']), jsonOf(message['request']));
      case 'control_cancel_request':
        return this.#prompts.withdraw(textOf(message['request_id']));
      case 'result':
        return this.#resulted(message);
    }
    if (run === null) return;
    this.#start.events.sign();
    // Errors of the model API come as messages too; the result repeats them.
    if (message['type'] !== 'assistant' || message['is_api_error_message'] === true) return;
    if (message['parent_tool_use_id'] !== null) return;
    for (const block of listOf(jsonOf(message['message'])['content']).map(jsonOf)) {
      const text = block['type'] === 'text' ? textOf(block['text']) : '';
      if (text !== '') this.#start.events.reply(text);
    }
  }

  #responded(response: Json): void {
    const id = textOf(response['request_id']);
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (response['subtype'] === 'success') call?.resolve(jsonOf(response['response']));
    else call?.reject(new Error(textOf(response['error'])));
  }

  #requested(id: string, request: Json): void {
    const respond = (response: Json): void =>
      this.#process.send({
        type: 'control_response',
        response: { subtype: 'success', request_id: id, response },
      });
    const run = this.#run;
    if (request['subtype'] === 'elicitation') return respond({ action: 'decline' });
    if (request['subtype'] !== 'can_use_tool') {
      const error = `${textOf(request['subtype'])} is not supported`;
      return this.#process.send({ type: 'control_response', response: { subtype: 'error', request_id: id, error } });
    }
    const response = questionResponse(request);
    if (response !== null) return respond(response);
    if (run === null) return respond(responseTo(request, 'decline'));
    this.#start.events.sign();
    this.#prompts.ask(id, promptOf(request, this.#start.folder), (decision) => {
      if (decision === 'cancel') run.isCanceled = true;
      respond(responseTo(request, decision));
    });
  }

  #resulted(result: Json): void {
    const errors = listOf(result['errors']).map(textOf);
    if (!this.#isReady) {
      const message = errors.join('; ') || textOf(result['result']);
      const isMissing = message.includes('No conversation found');
      const code = isMissing ? 'agent_conversation_missing' : 'agent_not_ready';
      for (const { reject } of this.#calls.values()) reject(new DriverRefusal(code, message));
      return;
    }
    const run = this.#run;
    const messages = result['user_message_uuids'];
    const isOther = Array.isArray(messages) && !messages.includes(run?.nativeId);
    if (run === null || isOther) return;
    if (result['subtype'] === 'success' && result['is_error'] !== true) run.end({ state: 'completed' });
    else if (run.isCanceled) run.end({ state: 'canceled' });
    else run.end({ state: 'failed', message: errors.join('; ') || textOf(result['result']) });
  }

  #exited(reason: string): void {
    this.#prompts.withdrawAll();
    if (this.#isReady) this.#start.events.exited(reason);
    this.#end(reason);
  }

  #end(reason: string): void {
    this.#endReason = reason;
    for (const { reject } of this.#calls.values()) reject(new Error(reason));
    this.#calls.clear();
    this.#run?.end({ state: 'failed', message: reason });
  }
}
