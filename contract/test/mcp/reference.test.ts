// The tools of the MCP endpoint: consistent with their routes, and documented.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { argumentsOf, outputOf } from '../../src/mcp/arguments.ts';
import { MCP_TOOLSETS } from '../../src/mcp/endpoint.ts';
import { mcpReference } from '../../src/mcp/reference.ts';
import { MCP_TOOLS } from '../../src/mcp/tools.ts';
import { ROUTES } from '../../src/routes.ts';

test('docs/mcp.md is up to date', () => {
  const page = readFileSync(new URL('../../../docs/mcp.md', import.meta.url), 'utf8');
  assert.equal(page, mcpReference(), 'run `npm run docs:mcp`');
});

test('tools have unique names, a known toolset and a published route', () => {
  assert.equal(new Set(MCP_TOOLS.map(({ name }) => name)).size, MCP_TOOLS.length);
  for (const { name, toolset, route } of MCP_TOOLS) {
    assert.match(name, /^[a-z]+(_[a-z]+)*$/);
    assert.ok(MCP_TOOLSETS.includes(toolset));
    assert.ok(ROUTES.includes(route) && route.published, name);
  }
});

test('every field of a route is an argument, with its schema', () => {
  for (const { route } of MCP_TOOLS) {
    const { places, schema } = argumentsOf(route);
    const properties = schema['properties'] as Record<string, object>;
    const fields = [...places.values()].map(({ part, field }) => `${part}.${field}`);
    const { params, query } = route.request;
    for (const name of Object.keys(params?.shape ?? {})) assert.ok(fields.includes(`params.${name}`));
    for (const name of Object.keys(query?.shape ?? {})) assert.ok(fields.includes(`query.${name}`));
    for (const name of places.keys()) assert.ok(Object.keys(properties[name] ?? {}).length > 0, name);
    assert.equal(schema['additionalProperties'], false);
  }
});

test('a read-only tool is a GET, and a GET is read-only', () => {
  for (const { name, route, hints } of MCP_TOOLS) {
    assert.equal(route.method === 'GET', hints.readOnly === true, name);
    assert.ok(!(hints.readOnly === true && hints.destructive === true), name);
  }
});

test('output schemas are objects, and open', () => {
  for (const { route } of MCP_TOOLS) {
    const schema = outputOf(route);
    assert.equal(schema['type'], 'object', route.name);
    assert.ok(!JSON.stringify(schema).includes('"additionalProperties":false'), route.name);
  }
});

test('output schemas define what they refer to, and nothing else', () => {
  for (const { route } of MCP_TOOLS) {
    const schema = outputOf(route);
    const referred = [...JSON.stringify(schema).matchAll(/"#\/\$defs\/(\w+)"/g)].map(([, name]) => name);
    assert.deepEqual(new Set(referred), new Set(Object.keys(schema['$defs'] ?? {})), route.name);
  }
});
