// Options and arguments by the fields of requests that they set, for messages of the API.
import { Option } from 'commander';
import type { CommandSpec, OptionSpec } from './command-spec.ts';

/** Returns the option or argument that sets a field such as `body.name`, if any. */
export type NameField = (field: string) => string | undefined;

interface Named {
  fields: readonly string[];
  name: string;
  typed: boolean;
}

/**
 * @param shared options of all commands
 * @param typed attributes of the options in the command line; of several that set a field, a typed
 *   one is named
 */
export function fieldNames(spec: CommandSpec, shared: readonly OptionSpec[], typed: ReadonlySet<string>): NameField {
  if (spec.rawFields === true) return () => undefined;
  const known: Named[] = [...shared, ...(spec.options ?? [])].map(({ flags, fields }) => {
    const option = new Option(flags);
    const attribute = option.attributeName();
    return {
      fields: fields ?? (option.negate ? [] : [attribute]),
      name: option.long ?? flags,
      typed: typed.has(attribute),
    };
  });
  for (const { name, fields } of spec.arguments ?? [])
    known.push({ fields: fields ?? [name.replaceAll(/\W/g, '')], name: name.replace('...', ''), typed: true });
  return (field) => {
    const path = field.replace(/^(?:body|query|path)\./, '');
    const steps = path.split('.');
    for (let length = steps.length; length >= 0; length -= 1) {
      const prefix = steps.slice(0, length).join('.');
      const setters = known.filter(({ fields }) => fields.includes(prefix));
      const setter = setters.findLast((one) => one.typed) ?? setters.at(-1);
      if (setter === undefined) continue;
      const rest = steps.slice(length).join('.');
      // A number is the place in a list.
      return /^\d*$/.test(rest) ? setter.name : `${setter.name} ${rest}`;
    }
    return undefined;
  };
}
