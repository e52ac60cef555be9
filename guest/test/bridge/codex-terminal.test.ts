// The real Codex in its terminal, with a scripted model: the person at its keys and a caller share
// its conversation.
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { text } from 'node:stream/consumers';
import type { Readable } from 'node:stream';
import { after, before, describe, test } from 'node:test';
import { untilTrue } from '../../../os/test/until.ts';
import { ModelServer } from '../../../e2e/model-servers/server.ts';
import { startCodexTerminal } from '../../src/bridge/codex/terminal.ts';
import type { AgentDriver, AgentPrompt, Decision, TurnEnd } from '../../src/bridge/driver.ts';
import { AgentHome } from './agent-session.ts';
import { realAgent } from './real-agents.ts';

let models: ModelServer;
before(async () => {
  models = await ModelServer.start();
});
after(() => models.close());

/** Codex in a terminal, with the part of a session that lets one turn run at a time. */
class Terminal {
  readonly replies: string[] = [];
  readonly exits: string[] = [];
  readonly ends: TurnEnd[] = [];
  readonly refused: string[] = [];
  prompt: { prompt: AgentPrompt; answer(decision: Decision): void } | null = null;
  isBusy = false;
  /** Conversations that the program has shown. */
  shown = 0;
  driver!: AgentDriver;
  readonly #id = randomUUID();
  readonly #home: AgentHome;

  private constructor(home: AgentHome) {
    this.#home = home;
  }

  static async start(home: AgentHome, savedId: string | null = null, mustResume = false): Promise<Terminal> {
    const terminal = new Terminal(home);
    const program = await realAgent('codex');
    terminal.driver = await startCodexTerminal(
      {
        ...{ savedId, mustResume, gatewayUrl: models.url, folder: home.work, program },
        ...{ spawn: (file, args, env) => home.spawn(file, args, env), signal: AbortSignal.timeout(120_000) },
        events: {
          reply: (reply) => void terminal.replies.push(reply),
          sign: () => undefined,
          exited: (message) => void terminal.exits.push(message),
          shows: () => void (terminal.shown += 1),
          ask: (prompt, answer) => {
            terminal.prompt = { prompt, answer };
            return () => void (terminal.prompt = null);
          },
          begins: (typed, end) => {
            if (terminal.isBusy) terminal.refused.push(typed);
            else void terminal.follow(end());
            return terminal.refused.at(-1) !== typed;
          },
        },
      },
      terminal.#id,
    );
    await untilTrue('a conversation', () => terminal.shown > 0);
    await terminal.shows('Ask Codex to do anything');
    return terminal;
  }

  async follow(end: Promise<TurnEnd>): Promise<TurnEnd> {
    this.isBusy = true;
    const ended = await end;
    this.isBusy = false;
    this.ends.push(ended);
    return ended;
  }

  run(...lines: string[]): Promise<TurnEnd> {
    return this.follow(this.driver.run(`trn_${randomUUID()}`, lines.join('\n')));
  }

  async #tmux(...args: readonly string[]): Promise<string> {
    const child = this.#home.spawn('/usr/bin/tmux', ['-L', `berth-${this.#id}`, ...args], {});
    return await text(child.stdout as Readable);
  }

  screen(): Promise<string> {
    return this.#tmux('capture-pane', '-p', '-t', 'agent');
  }

  async shows(words: string): Promise<void> {
    await untilTrue(`the screen shows ${words}`, async () => (await this.screen()).includes(words));
  }

  async key(name: string): Promise<void> {
    await this.#tmux('send-keys', '-t', 'agent', name);
  }

  async type(words: string): Promise<void> {
    await this.#tmux('send-keys', '-t', 'agent', '-l', words);
    await this.shows(words);
    await this.key('Enter');
  }

  async asked(): Promise<NonNullable<Terminal['prompt']>> {
    await untilTrue('an approval', () => this.prompt !== null);
    return this.prompt ?? assert.fail();
  }
}

// The pinned packages are those of x86-64.
describe('codex in a terminal', { skip: process.arch !== 'x64' }, () => {
  let home: AgentHome;
  let terminal: Terminal;
  before(async () => {
    home = await AgentHome.create('codex');
    terminal = await Terminal.start(home);
  });
  after(async () => {
    await terminal.driver.close();
    await home.remove();
  });

  test('a caller and a person see the messages and replies of each other', async () => {
    assert.deepEqual(await terminal.run('@say from the caller'), { state: 'completed' });
    await terminal.shows('• from the caller');
    await terminal.type('@say from the person');
    await untilTrue('the reply', () => terminal.replies.includes('from the person'));
    assert.deepEqual(terminal.replies.splice(0), ['from the caller', 'from the person']);
    await untilTrue('the end of the turn', () => !terminal.isBusy);
    assert.equal(models.calls.filter(({ prompt }) => prompt === '@say from the caller').length, 1);
  });

  test('each side answers the approvals of the other', async () => {
    const turn = terminal.run('@run touch callers', '@say ran');
    assert.match((await terminal.asked()).prompt.detail, /touch callers/);
    await terminal.shows('Would you like to run');
    await terminal.key('y');
    assert.deepEqual(await turn, { state: 'completed' });
    assert.equal(terminal.prompt, null);

    await terminal.type('@run touch persons');
    (await terminal.asked()).answer('accept');
    await untilTrue('the end of the turn', () => !terminal.isBusy);
    await untilTrue('the dialog closes', async () => !(await terminal.screen()).includes('Would you like to run'));
    assert.deepEqual([await home.read('callers'), await home.read('persons')], ['', '']);
    terminal.replies.length = 0;
  });

  test('a caller interrupts a person, and a person a caller', async () => {
    await terminal.type('@slow 100000');
    await untilTrue('a call of the model', () => models.callsFor('@slow 100000') > 0);
    await terminal.driver.interrupt();
    await untilTrue('the end of the turn', () => !terminal.isBusy);
    assert.equal(terminal.ends.at(-1)?.state, 'canceled');
    await terminal.shows('Conversation interrupted');

    const turn = terminal.run('@slow 200000');
    await untilTrue('a call of the model', () => models.callsFor('@slow 200000') > 0);
    await terminal.shows('@slow 200000');
    await terminal.key('Escape');
    assert.deepEqual(await turn, { state: 'canceled' });
    terminal.replies.length = 0;
  });

  test('a text that a person types first or second runs once, or is refused with its text kept', async () => {
    terminal.isBusy = true;
    await terminal.type('@say kept text');
    await terminal.shows('Failed to start turn');
    terminal.isBusy = false;
    assert.equal(models.callsFor('@say kept text'), 0);
    await terminal.key('Enter');
    await untilTrue('the reply', () => terminal.replies.includes('kept text'));
    await untilTrue('the end of the turn', () => !terminal.isBusy);
    terminal.replies.length = 0;
  });

  test('messages go to the thread that a person starts', async () => {
    const { savedId } = terminal.driver;
    await terminal.key('C-u');
    await terminal.type('/new');
    await untilTrue('another thread', () => terminal.shown === 2);
    assert.notEqual(terminal.driver.savedId, savedId);
    assert.deepEqual(await terminal.run('@history'), { state: 'completed' });
    await terminal.shows('@history');
    terminal.replies.length = 0;
  });

  test('a person who exits ends the agent, and another start resumes the conversation', async () => {
    const { savedId } = terminal.driver;
    await terminal.run('@say remembered');
    await terminal.type('/quit');
    await untilTrue('the exit', () => terminal.exits.length > 0);
    assert.match(terminal.exits.join(), /tmux exited with code 0/);
    await terminal.driver.close();

    terminal = await Terminal.start(home, savedId, true);
    assert.equal(terminal.driver.savedId, savedId);
    await terminal.shows('• remembered');
    assert.deepEqual(await terminal.run('@history'), { state: 'completed' });
    assert.match(terminal.replies.join(), /remembered/);
  });

  test('a conversation that Codex does not have is refused, or begun anew', async () => {
    const unknown = '6f9c8e6c-5a2f-4a43-9b39-2f6a8f6c3c99';
    await assert.rejects(Terminal.start(home, unknown, true), { code: 'agent_conversation_missing' });
    const another = await Terminal.start(home, unknown);
    assert.notEqual(another.driver.savedId, unknown);
    await another.driver.close();
  });
});
