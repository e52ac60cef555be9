// The scripted agent, for tests: no model, one shell process. Each line of a message is an
// instruction; the first word of an unknown one makes it a reply.
//
//   say TEXT             replies              stream N MS     N replies, one each MS milliseconds
//   run COMMAND          replies its output   large UNITS     a reply of that size
//   background COMMAND   starts it            write PATH TEXT writes a file
//   ask TITLE            asks; replies the decision           ask-twice    asks twice at once
//   ask-run COMMAND      asks; runs the command if accepted
//   history              replies the number of turns so far
//   hang                 until interrupted    deaf            hangs, and ignores the interrupt
//   fail TEXT            fails the turn       crash           kills the agent
//
// Appends the turn id to ~/agent-effects once for each executed turn. The file
// ~/.scripted-agent/signed-out makes its start fail. The instructions of ~/.scripted-agent/script
// replace those of the next message, which can be a sentence.
import { setTimeout as delay } from 'node:timers/promises';
import { DriverRefusal, type AgentDriver, type Decision, type DriverStart, type TurnEnd } from '../driver.ts';
import { Shell } from './shell.ts';

const FOLDER = '~/.scripted-agent';
/** Output of a command in a reply. */
const REPLY_BYTES = 100_000;

export async function startScripted(start: DriverStart): Promise<AgentDriver> {
  const { savedId, events } = start;
  const shell = new Shell(start.spawn('/bin/sh', [], {}), (message) => events.exited(message));
  const state = await shell.run(`mkdir -p ${FOLDER}; [ ! -e ${FOLDER}/signed-out ] || echo out`);
  if (state !== '') throw await refusal(shell, 'agent_not_signed_in', 'the scripted agent is not signed in');

  const id = savedId ?? crypto.randomUUID();
  const conversation = `${FOLDER}/${id}`;
  if (savedId === null) await shell.run(`touch ${conversation}`);
  else if ((await shell.run(`[ -e ${conversation} ] || echo missing`)) !== '')
    throw await refusal(shell, 'agent_conversation_missing', 'the conversation of the scripted agent is missing');

  return new ScriptedAgent(start, shell, id, conversation);
}

async function refusal(shell: Shell, code: DriverRefusal['code'], message: string): Promise<DriverRefusal> {
  await shell.end();
  return new DriverRefusal(code, message);
}

class ScriptedAgent implements AgentDriver {
  readonly savedId: string;
  readonly #start: DriverStart;
  readonly #shell: Shell;
  readonly #conversation: string;
  #stop = new AbortController();

  constructor(start: DriverStart, shell: Shell, savedId: string, conversation: string) {
    this.#start = start;
    this.#shell = shell;
    this.savedId = savedId;
    this.#conversation = conversation;
  }

  get pid(): number {
    return this.#shell.pid;
  }

  async run(turnId: string, text: string): Promise<TurnEnd> {
    this.#stop = new AbortController();
    const { signal } = this.#stop;
    const script = await this.#shell.run(
      `echo ${turnId} >>~/agent-effects; echo ${turnId} >>${this.#conversation}; ` +
        `cat ${FOLDER}/script 2>/dev/null && rm ${FOLDER}/script`,
    );
    for (const line of (script || text).split('\n').filter(Boolean)) {
      this.#start.events.sign();
      const end = await this.#step(line, signal);
      if (end !== null) return end;
    }
    return { state: 'completed' };
  }

  async interrupt(): Promise<void> {
    this.#stop.abort();
  }

  close(): Promise<void> {
    return this.#shell.end();
  }

  /** Null: the turn continues. */
  async #step(line: string, signal: AbortSignal): Promise<TurnEnd | null> {
    const { events } = this.#start;
    const [, word = '', rest = ''] = /^(\S+) ?(.*)$/s.exec(line) ?? [];
    switch (word) {
      case 'run':
        return this.#orStopped(this.#run(rest), signal);
      case 'background':
        await this.#shell.run(`( ${rest} ) </dev/null >/dev/null 2>&1 &`);
        return null;
      case 'write': {
        const [, path = '', text = ''] = /^(\S+) ?(.*)$/s.exec(rest) ?? [];
        await this.#shell.run(`printf %s ${quoted(text)} >${quoted(path)}`);
        return null;
      }
      case 'stream':
        return this.#orStopped(this.#stream(rest, signal), signal);
      case 'large':
        events.reply('é'.repeat(Number(rest)));
        return null;
      case 'ask':
        return this.#ask([rest], signal);
      case 'ask-run':
        return this.#ask([rest], signal, () => this.#run(rest));
      case 'ask-twice':
        return this.#ask([`${rest} 1`, `${rest} 2`], signal);
      case 'history':
        events.reply((await this.#shell.run(`wc -l <${this.#conversation}`)).trim());
        return null;
      case 'hang':
        return this.#orStopped(new Promise(() => {}), signal);
      case 'deaf':
        return new Promise(() => {});
      case 'fail':
        return { state: 'failed', message: rest };
      case 'crash':
        await this.#shell.run('kill -9 $$');
        return null;
      default:
        events.reply(word === 'say' ? rest : line);
        return null;
    }
  }

  async #run(command: string): Promise<void> {
    const output = `${this.#conversation}.output`;
    const text = await this.#shell.run(
      `( ${command}\n) </dev/null >${output} 2>&1; head -c ${REPLY_BYTES} ${output}; rm ${output}`,
    );
    this.#start.events.reply(text);
  }

  async #stream(rest: string, signal: AbortSignal): Promise<void> {
    const [count = 1, everyMs = 0] = rest.split(' ').map(Number);
    for (let number = 1; number <= count && !signal.aborted; number += 1) {
      if (everyMs > 0) await delay(everyMs, undefined, { signal });
      this.#start.events.reply(`reply ${number}`);
    }
  }

  async #ask(
    titles: readonly string[],
    signal: AbortSignal,
    accepted = async () => this.#start.events.reply('decision accept'),
  ): Promise<TurnEnd | null> {
    const { folder, events } = this.#start;
    const decisions = titles.map(async (title): Promise<Decision> => {
      const answered = Promise.withResolvers<Decision>();
      const detail = `detail of ${title}`;
      events.ask({ kind: 'command', title, detail, workingDirectory: folder }, answered.resolve);
      return answered.promise;
    });
    for (const decision of decisions) {
      const stopped = await this.#orStopped(
        decision.then((known) => {
          if (known === 'accept') return accepted();
          return known === 'cancel' ? this.#stop.abort() : events.reply('decision decline');
        }),
        signal,
      );
      if (stopped !== null) return stopped;
    }
    return null;
  }

  async #orStopped(work: Promise<unknown>, signal: AbortSignal): Promise<TurnEnd | null> {
    const stopped = Promise.withResolvers<void>();
    signal.addEventListener('abort', () => stopped.resolve(), { once: true });
    if (signal.aborted) stopped.resolve();
    await Promise.race([
      stopped.promise,
      work.catch((error: unknown) => {
        if (!signal.aborted) throw error;
      }),
    ]);
    return signal.aborted ? { state: 'canceled' } : null;
  }
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
