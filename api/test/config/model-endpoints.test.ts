// The variable that lists the endpoints of model providers.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serveEnvironment } from '../../src/config/environment.ts';
import { modelEndpointsOf } from '../../src/rules/agents/model-endpoints.ts';

const { BERTH_MODEL_ENDPOINTS } = serveEnvironment.shape;

test('model endpoints are a list of provider and URL', () => {
  const read = (list: string) => modelEndpointsOf(BERTH_MODEL_ENDPOINTS.parse(list));
  assert.deepEqual(read('anthropic=https://a.test/, openai=http://10.0.0.1:4000/v1,openai=https://b.test'), {
    openai: ['http://10.0.0.1:4000/v1', 'https://b.test'],
    anthropic: ['https://a.test'],
  });
  for (const wrong of ['https://a.test', 'other=https://a.test', 'openai=ftp://a.test', 'openai=https://u@a.test', ''])
    assert.throws(() => read(wrong), /must be comma-separated/);
});
