// Text of a hostile guest in the output of `berth agent`: no character acts on the terminal.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { AgentSession } from '@berth/sdk';
import stringWidth from 'string-width';
import { TestService } from '../world/test-service.ts';

/** Clears the screen, in both forms of CSI, sets the title, moves back, reverses the direction. */
const EVIL = 'a\u001B[2Jb\u009B2Jc\u001B]0;title\u0007d\b\u007Fe\rf\u202Eg\u2066h\u2028i\uFEFFj';
// oxlint-disable-next-line no-control-regex -- these are the characters that are meant
const ACTING = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u200E\u200F\u2028-\u202E\u2066-\u2069\uFEFF]/;

let service: TestService;
let session: AgentSession;
before(async () => {
  service = await TestService.start({
    agent: async ({ reply, ask, text }) => {
      reply(`${EVIL}\n\tsecond line`);
      if (text === 'ask')
        reply(await ask({ title: EVIL, detail: `first\n${EVIL}`, kind: EVIL, workingDirectory: EVIL }));
    },
  });
  session = await service.server.client().agents.start((await service.sandbox()).id);
});
after(async () => await service.close());

test('replies keep their lines and tabs, and nothing else of them acts, in every format', async () => {
  for (const words of [
    ['send', session.id, 'hello', '--wait'],
    ['send', session.id, 'hello', '--wait', '--json'],
    ['log', session.id],
    ['log', session.id, '--json'],
    ['log', session.id, '--follow'],
  ]) {
    const { code, stdout, stderr } = await service.run(['agent', ...words]);
    assert.equal(code, 0, stderr);
    assert.ok(!ACTING.test(stdout + stderr), JSON.stringify(stdout));
    if (words.includes('--json'))
      assert.ok(JSON.stringify(JSON.parse(stdout)).includes(JSON.stringify(EVIL).slice(1, -1)));
    else assert.match(stdout, /a\\u001b\[2Jb\\u009b2Jc.*\n {0,4}\tsecond line\n/);
  }
});

test('an approval is escaped, wrapped by its lines and barred, in a narrow terminal too', async () => {
  const asked = await service.run(['agent', 'send', session.id, 'ask', '--wait']);
  assert.deepEqual([asked.code, ACTING.test(asked.stdout + asked.stderr)], [3, false]);
  for (const words of [
    ['ls', '--needs-you'],
    ['ls', '--json'],
    ['get', session.id, '--full'],
    ['get', session.id, '--json'],
  ]) {
    const { stdout, stderr } = await service.run(['agent', ...words]);
    assert.ok(!ACTING.test(stdout + stderr), stdout);
  }
  const columns = 40;
  const screen = service.terminal(['agent', 'answer', session.id], { columns });
  await screen.shows(/ancel\? $/);
  const lines = screen.text.split('\r\n');
  assert.ok(
    lines.every((line) => !ACTING.test(line) && stringWidth(line) < columns),
    screen.text,
  );
  const from = lines.findIndex((line) => line === 'detail');
  const detail = lines.slice(from + 1, -1);
  assert.ok(
    detail.every((line) => line.startsWith('│ ') && stringWidth(line) < columns),
    detail.join('\n'),
  );
  assert.equal(
    detail
      .slice(1)
      .map((line) => line.slice(2))
      .join(''),
    String.raw`a\u001b[2Jb\u009b2Jc\u001b]0;title\u0007d\u0008\u007fe\u000df\u202eg\u2066h\u2028i\ufeffj`,
  );
  screen.type('accept\r');
  assert.equal(await screen.ended(), 0);
  assert.match(screen.text, /\r\n1 accept\r\n$/);
});
