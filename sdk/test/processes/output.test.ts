// Printed chunks of an output.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { ProcessOutput } from '../../src/processes/output.ts';

const AT = { stream: 'stdout', offset: 0, lostBytes: 0, cursor: '3.0' } as const;

test('a printed chunk shows its text, in templates and as JSON too', () => {
  for (const content of [
    { data: 'hé', encoding: 'utf8' as const },
    { data: Buffer.from('hé').toString('base64'), encoding: 'base64' as const },
    new TextEncoder().encode('hé'),
  ]) {
    const chunk = new ProcessOutput(AT, content);
    assert.match(inspect(chunk), /text: 'hé'/);
    assert.equal(String(chunk), 'hé');
    assert.deepEqual(JSON.parse(JSON.stringify(chunk)), { ...AT, text: 'hé' });
    assert.deepEqual(Buffer.from(chunk.bytes), Buffer.from('hé'));
  }
});
