import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { test } from 'node:test';
import { AGENT_LINE_BYTES, AgentProcess, type Json } from '../../src/bridge/agent-process.ts';
import type { AgentPrompt, Decision, DriverEvents } from '../../src/bridge/driver.ts';
import { OPEN_PROMPTS, OpenPrompts } from '../../src/bridge/open-prompts.ts';

interface Started {
  agent: AgentProcess;
  messages: Json[];
  /** Resolves with the reason of the exit. */
  exited: Promise<string>;
}

function start(program: string): Started {
  const { promise, resolve } = Promise.withResolvers<string>();
  const messages: Json[] = [];
  const child = spawn(process.execPath, ['--eval', program], { stdio: 'pipe' });
  const agent = new AgentProcess(child, { message: (message) => void messages.push(message), exited: resolve });
  return { agent, messages, exited: promise };
}

test('messages arrive whole over chunks; lines that are no messages are skipped', async () => {
  const { messages, exited } = start(
    `const out = (s) => new Promise((r) => process.stdout.write(s, r));
     await out('a log line\\n{"a":'); await out('"\\u00e4"}\\n{"b":2}\\n[1]\\n');
     console.error('last words'); process.exit(3);`,
  );
  assert.match(await exited, /code 3: last words/);
  assert.deepEqual(messages, [{ a: 'ä' }, { b: 2 }]);
});

test('an agent that writes an endless line is killed', async () => {
  const { agent, exited } = start(
    `const piece = Buffer.alloc(1 << 20, '{'); const write = () => process.stdout.write(piece, write); write();`,
  );
  assert.match(await exited, new RegExp(`line of over ${AGENT_LINE_BYTES} bytes`));
  await agent.close();
});

test('an agent that breaks the protocol is killed', async () => {
  const { agent, exited } = start(`console.log('{"a":'); setInterval(() => {}, 1000)`);
  assert.match(await exited, /no JSON/);
  await agent.close();
});

test('an agent that does not read its input is killed', async () => {
  const { agent, exited } = start(`setInterval(() => {}, 1000)`);
  for (let sent = 0; sent < 20; sent += 1) agent.send({ text: 'x'.repeat(1 << 20) });
  assert.match(await exited, /does not read/);
  await agent.close();
});

test('closing ends an agent that ignores the end of its input and SIGTERM, without an event', async () => {
  const { agent, messages, exited } = start(
    `process.on('SIGTERM', () => {}); console.log('{}'); setInterval(() => {}, 1000)`,
  );
  let reason: string | null = null;
  void exited.then((given) => (reason = given));
  await agent.close();
  assert.throws(() => process.kill(agent.pid, 0));
  assert.equal(reason, null);
  assert.deepEqual(messages, []);
});

test('approvals over the limit are declined, and a withdrawn one takes no answer', () => {
  const answers: ((decision: Decision) => void)[] = [];
  let withdrawn = 0;
  const events = {
    ask: (_: AgentPrompt, answer: (decision: Decision) => void) => {
      answers.push(answer);
      return () => void (withdrawn += 1);
    },
  } as Partial<DriverEvents> as DriverEvents;
  const prompts = new OpenPrompts(events);
  const prompt: AgentPrompt = { kind: 'command', title: '', detail: '', workingDirectory: null };
  const responses: string[] = [];
  for (let id = 0; id <= OPEN_PROMPTS; id += 1)
    prompts.ask(id, prompt, (decision) => responses.push(`${id} ${decision}`));
  assert.deepEqual(responses, [`${OPEN_PROMPTS} decline`]);

  prompts.withdraw(0);
  answers[0]?.('accept');
  answers[1]?.('cancel');
  answers[1]?.('accept');
  prompts.withdrawAll();
  answers[2]?.('accept');
  assert.deepEqual(responses.slice(1), ['1 cancel']);
  assert.equal(withdrawn, OPEN_PROMPTS - 1);
});
