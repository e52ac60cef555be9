import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Progress } from '../../src/output/progress.ts';

function recorder(isTTY: boolean): { text: string; isTTY: boolean; columns: number; write(text: string): void } {
  return {
    text: '',
    isTTY,
    columns: 60,
    write(text) {
      this.text += text;
    },
  };
}

/** Runs a step for the given time, on the test's clock. */
async function runStep(isTTY: boolean, seconds: number, note: string): Promise<string> {
  mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
  try {
    let now = 0;
    const output = recorder(isTTY);
    const progress = new Progress(output, () => now);
    const end = Promise.withResolvers<number>();
    const step = progress.step('image', async (report) => {
      report(note);
      return end.promise;
    });
    for (let second = 0; second < seconds; second += 1) {
      now += 1_000;
      mock.timers.tick(1_000);
    }
    end.resolve(7);
    assert.equal(await step, 7);
    return output.text;
  } finally {
    mock.timers.reset();
  }
}

test('a step of less than a second prints nothing', async () => {
  assert.equal(await runStep(false, 0, 'x'), '');
});

test('a long step logs that it runs, its progress now and then, and its duration', async () => {
  assert.equal(
    await runStep(false, 11, 'unpacking\n 3 of 7'),
    '• image: 1 s, unpacking 3 of 7\n• image: 5 s, unpacking 3 of 7\n' +
      '• image: 10 s, unpacking 3 of 7\n✓ image (11.0 s)\n',
  );
});

test('a terminal line is rewritten in place and never wider than the terminal', async () => {
  const text = await runStep(true, 3, 'a very long note that does not fit into the width of this terminal at all');
  assert.ok(!text.slice(0, -1).includes('\n'));
  for (const line of text.split('\r\u001B[2K')) assert.ok(line.trimEnd().length < 60, line);

  assert.match(text, /✓ image \(3\.0 s\)\n$/);
});

test('a failed step is marked and its error passes through', async () => {
  const output = recorder(false);
  await assert.rejects(
    new Progress(output).step('image', async () => {
      throw new Error('no space');
    }),
    /no space/,
  );
  assert.match(output.text, /^✗ image \(\d+\.\d s\)\n$/);
});
