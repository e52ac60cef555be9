// `berth sandbox env`: the environment variables of a sandbox. Values are never shown.
import { parseEnv } from 'node:util';
import { canPrompt } from '../interaction/prompt.ts';
import { readSecret, readSecretFile } from '../interaction/secret-input.ts';
import { UsageError } from '../output/failure.ts';
import { since } from '../output/time.ts';
import type { Input } from '../program/command-spec.ts';
import type { CliContext } from '../program/context.ts';
import { findSandbox } from '../service/find-sandbox.ts';

interface EnvOptions {
  fromFile?: string;
  replace?: true;
}

export async function sandboxEnv(
  context: CliContext,
  { args: [action, typed, ...variables], options }: Input<EnvOptions>,
): Promise<void> {
  const { connect, out, signal } = context;
  if (action !== 'set' && (options.fromFile !== undefined || options.replace === true))
    throw new UsageError('--from-file and --replace require the action set');
  if (action === 'ls') {
    if (variables.length > 0) throw new UsageError('ls takes no variables');
    const path = { sandboxId: await findSandbox(context, typed) };
    const { berth } = await connect();
    const answer = await berth.raw.listVariables({ path, signal });
    if (out.json) return out.object(answer);
    return out.table(
      [
        { title: 'name', value: ({ name }) => name, whole: true },
        { title: 'updated', value: ({ updatedAt }) => since(updatedAt), least: 8 },
      ],
      answer.variables,
      'no variables',
    );
  }

  const changes = action === 'set' ? await valuesOf(context, variables, options.fromFile) : removed(variables);
  const destructive = action === 'unset' || options.replace === true;
  const path = { sandboxId: await findSandbox(context, typed, { destructive }) };
  const { berth } = await connect();
  const call = { path, signal };
  const answer =
    options.replace === true
      ? await berth.raw.replaceVariables({ ...call, body: { variables: changes as Record<string, string> } })
      : await berth.raw.updateVariables({ ...call, body: { variables: changes } });
  if (out.json) return out.object(answer);
  const count = Object.keys(changes).length;
  out.line(`${action} ${count} ${count === 1 ? 'variable' : 'variables'} of ${path.sandboxId}`);
}

function removed(names: readonly string[]): Record<string, null> {
  if (names.length === 0) throw new UsageError('no variable given; name those to unset');
  const value = names.find((name) => name.includes('='));
  if (value !== undefined) throw new UsageError('unset takes names, without = and a value');
  return Object.fromEntries(names.map((name) => [name, null]));
}

/** Later ones win; arguments over the file. */
async function valuesOf(
  context: CliContext,
  typed: readonly string[],
  file: string | undefined,
): Promise<Record<string, string>> {
  const found = new Map<string, string>();
  if (file !== undefined) {
    const entries = Object.entries(parseEnv(await readSecretFile(context, file, 'variables')));
    if (entries.length === 0) throw new UsageError(`${file} has no line NAME=VALUE`);
    for (const [name, value] of entries) found.set(name, value ?? '');
  }
  const unvalued = typed.filter((one) => !one.includes('='));
  if (!canPrompt(context) && unvalued.length + (file === '-' ? 1 : 0) > 1)
    throw new UsageError('stdin has the value of one variable only; pass several with --from-file -');
  for (const one of typed) {
    const equals = one.indexOf('=');
    if (equals === -1) found.set(one, await readSecret(context, `value of ${one}`));
    else found.set(one.slice(0, equals), one.slice(equals + 1));
  }
  if (found.size === 0) throw new UsageError('no variable given; pass NAME=VALUE, NAME or --from-file');
  return Object.fromEntries(found);
}
