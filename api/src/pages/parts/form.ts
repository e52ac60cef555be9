// Forms: fields with labels, hints and errors, and the parsing of submissions.
import type { z } from 'zod';
import { html, type Html } from '../../rules/html.ts';

/** State of a redisplayed form: values by field name, and errors. */
export interface FormState {
  values: Readonly<Record<string, string>>;
  errors: readonly FieldError[];
}

interface FieldError {
  /** Field name; null: the form as a whole. */
  field: string | null;
  message: string;
}

export const EMPTY_FORM: FormState = { values: {}, errors: [] };

/** The form's state with one error. */
export function withError(values: Readonly<Record<string, string>>, field: string | null, message: string): FormState {
  return { values, errors: [{ field, message }] };
}

type FormReading<T> = { read: T; wrong?: undefined } | { read?: undefined; wrong: FormState };

/** Parses the form's fields by a schema of texts; ignores other fields. */
export function readForm<S extends z.ZodObject>(schema: S, sent: unknown): FormReading<z.output<S>> {
  const given = Object.fromEntries(
    Object.keys(schema.shape).map((name) => [name, (sent as Record<string, unknown> | undefined)?.[name] ?? '']),
  );
  const result = schema.safeParse(given);
  if (result.success) return { read: result.data };
  const errors = new Map<string, string>();
  // The first error per field: "is missing" precedes "is too short".
  for (const { path, message } of result.error.issues) {
    const name = String(path[0]);
    if (!errors.has(name)) errors.set(name, message);
  }
  const values = Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string');
  return {
    wrong: { values: Object.fromEntries(values), errors: [...errors].map(([field, message]) => ({ field, message })) },
  };
}

interface Field {
  name: string;
  label: string;
  type: 'text' | 'email' | 'password';
  autocomplete: 'username' | 'email' | 'name' | 'current-password' | 'new-password' | 'one-time-code' | 'off';
  maxLength: number;
  hint?: string;
  /** Initial value, used while the form has none; with `fixed` always used and read-only. */
  value?: string;
  fixed?: boolean;
  /** Style and input mode of codes. */
  code?: boolean;
}

/** A labelled field with hint and error. Passwords are never shown again. */
export function field(
  state: FormState,
  { name, label, type, autocomplete, maxLength, hint, value, fixed, code }: Field,
): Html {
  const id = fieldId(name);
  const error = state.errors.find((one) => one.field === name);
  const told = [hint === undefined ? null : `${id}-hint`, error === undefined ? null : `${id}-error`].filter(
    (one) => one !== null,
  );
  const kept = type === 'password' ? '' : fixed === true ? (value ?? '') : (state.values[name] ?? value ?? '');
  return html`<div class="field">
    <label for="${id}">${label}</label>
    ${hint === undefined ? '' : html`<p class="hint" id="${id}-hint">${hint}</p>`}
    ${error === undefined ? '' : html`<p class="error" id="${id}-error">${error.message}</p>`}
    <input
      id="${id}"
      name="${name}"
      type="${type}"
      autocomplete="${autocomplete}"
      maxlength="${maxLength}"
      value="${kept}"
      ${fixed === true ? html`readonly` : html`required`}
      ${told.length === 0 ? '' : html`aria-describedby="${told.join(' ')}"`}
      ${error === undefined ? '' : html`aria-invalid="true"`}
      ${code === true ? html`class="code"` : ''}
      ${type === 'text' && autocomplete === 'name' ? '' : html`autocapitalize="none" spellcheck="false"`}
    />
  </div>`;
}

/** A checkbox that sends `yes`. */
export function checkbox(
  state: FormState,
  { name, label, hint }: Pick<Field, 'name' | 'label'> & { hint: string },
): Html {
  const id = fieldId(name);
  return html`<div class="field">
    <label class="check" for="${id}">
      <input
        id="${id}"
        name="${name}"
        type="checkbox"
        value="yes"
        aria-describedby="${id}-hint"
        ${state.values[name] === 'yes' ? html`checked` : ''}
      />
      ${label}
    </label>
    <p class="hint" id="${id}-hint">${hint}</p>
  </div>`;
}

export function hidden(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}" />`;
}

export function form(action: string, content: Html): Html {
  // `novalidate`: the service reports errors itself, alike in every browser.
  return html`<form method="post" action="${action}" novalidate>${content}</form>`;
}

/** Error summary with links to the fields. Takes the focus, to be read first. */
export function errorSummary({ errors }: FormState): Html {
  if (errors.length === 0) return html``;
  return html`<div class="summary" role="alert" tabindex="-1" autofocus>
    <h2>That did not work</h2>
    <ul>
      ${errors.map((error) => html`<li>${errorItem(error)}</li>`)}
    </ul>
  </div>`;
}

function errorItem({ field: name, message }: FormState['errors'][number]): Html | string {
  return name === null ? message : html`<a href="#${fieldId(name)}">${message}</a>`;
}

function fieldId(name: string): string {
  return `field-${name.replaceAll('_', '-')}`;
}
