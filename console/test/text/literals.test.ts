// Words in components come from console/src/text.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { parseSync, Visitor, type ESTree } from 'vite';

const SOURCES = join(import.meta.dirname, '../../src');
/** Attributes that a person reads. */
const READ = /^(?:alt|aria-(?:description|label|placeholder|roledescription|valuetext)|placeholder|title)$/;
/** Properties of components that a person reads. */
const PROPS = /^(?:description|done|failed|hint|label|legend|name|submit|what)$/;

const WORD = /\p{L}{2}/u;

/** Words of the component's source that are written in place. */
function literalsOf(file: string, source: string): string[] {
  const found: string[] = [];
  const add = (node: ESTree.Node | null): void => {
    switch (node?.type) {
      case 'JSXExpressionContainer':
        return add(node.expression);
      case 'ConditionalExpression':
        return [node.consequent, node.alternate].forEach(add);
      case 'LogicalExpression':
        return add(node.right);
      case 'JSXText':
      case 'Literal':
        return typeof node.value === 'string' && WORD.test(node.value) ? void found.push(node.value.trim()) : undefined;
      case 'TemplateLiteral':
        return node.quasis
          .filter(({ value }) => WORD.test(value.raw))
          .forEach(({ value }) => found.push(value.raw.trim()));
    }
  };
  const { program, errors } = parseSync(file, source);
  assert.deepEqual(errors, [], file);
  new Visitor({
    JSXElement: ({ children, openingElement }) => {
      children.forEach(add);
      const isComponent = openingElement.name.type === 'JSXIdentifier' && /^[A-Z]/.test(openingElement.name.name);
      for (const attribute of openingElement.attributes) {
        if (attribute.type !== 'JSXAttribute' || attribute.name.type !== 'JSXIdentifier') continue;
        const { name } = attribute.name;
        if (READ.test(name) || (isComponent && PROPS.test(name))) add(attribute.value);
      }
    },
    JSXFragment: ({ children }) => children.forEach(add),
  }).visit(program);
  return found;
}

test('no component has words of its own', () => {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tsx'));
  assert.ok(files.length > 50);
  const found = files.flatMap((file) =>
    literalsOf(file, readFileSync(join(SOURCES, file), 'utf8')).map((text) => `${file}: ${text}`),
  );
  assert.deepEqual(found, []);
});

test('words in elements, fragments, expressions and attributes are found', () => {
  const source = `export const Page = () => <><p title="one">two {'three'} {open ? \`four \${1}\` : <b>five</b>}</p>six
    <Field label={"seven"} type="button" hint={text.hint}>{count} · {' '}</Field></>;`;
  assert.deepEqual(literalsOf('page.tsx', source).toSorted(), ['five', 'four', 'one', 'seven', 'six', 'three', 'two']);
});
