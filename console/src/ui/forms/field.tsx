// A labelled field with a hint and an error.
import { useId, type ComponentProps, type ReactNode } from 'react';
import { visibleText } from '../../rules/visible-text.ts';
import css from './field.module.css';

interface FieldProps {
  label: string;
  hint?: string;
  error?: string | undefined;
  /** Renders the control with the given attributes. */
  children: (attributes: ControlAttributes) => ReactNode;
}

interface ControlAttributes {
  id: string;
  className: string | undefined;
  'aria-describedby': string | undefined;
  'aria-invalid': true | undefined;
}

export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const described = [hint === undefined ? null : `${id}-hint`, error === undefined ? null : `${id}-error`];
  return (
    <div className={css.field}>
      <label htmlFor={id}>{label}</label>
      {children({
        id,
        className: css.control,
        'aria-describedby': described.filter((one) => one !== null).join(' ') || undefined,
        'aria-invalid': error === undefined ? undefined : true,
      })}
      {hint === undefined ? null : (
        <p id={`${id}-hint`} className={css.hint}>
          {hint}
        </p>
      )}
      {error === undefined ? null : (
        <p id={`${id}-error`} className={css.error}>
          {error}
        </p>
      )}
    </div>
  );
}

type Labelled = Pick<FieldProps, 'label' | 'hint' | 'error'>;

interface TextFieldProps extends Labelled, Omit<ComponentProps<'input'>, 'onChange' | 'value'> {
  value: string;
  onChange: (value: string) => void;
}

export function TextField({ label, hint, error, onChange, ...input }: TextFieldProps) {
  return (
    <Field label={label} error={error} {...(hint === undefined ? {} : { hint })}>
      {(attributes) => (
        <input
          autoComplete="off"
          spellCheck={false}
          {...attributes}
          {...input}
          onChange={({ target }) => onChange(target.value)}
        />
      )}
    </Field>
  );
}

/** Texts by value, in order; texts of a group by its name. */
type Options = Readonly<Record<string, string | Readonly<Record<string, string>>>>;

interface SelectProps<Value extends string> extends Omit<ComponentProps<'select'>, 'onChange' | 'value'> {
  value: Value;
  options: Options;
  onChange: (value: Value) => void;
}

const optionElements = (options: Options): ReactNode =>
  Object.entries(options).map(([option, words]) =>
    typeof words === 'string' ? (
      <option key={option} value={option}>
        {words}
      </option>
    ) : (
      <optgroup key={option} label={option}>
        {optionElements(words)}
      </optgroup>
    ),
  );

/** A select that an attribute names, such as a filter. */
export function Select<Value extends string>({ options, onChange, ...attributes }: SelectProps<Value>) {
  return (
    <select className={css.control} {...attributes} onChange={({ target }) => onChange(target.value as Value)}>
      {optionElements(options)}
    </select>
  );
}

interface SelectFieldProps<Value extends string> extends Labelled {
  disabled?: boolean;
  value: Value;
  options: Readonly<Record<Value, string>>;
  onChange: (value: Value) => void;
}

export function SelectField<Value extends string>(props: SelectFieldProps<Value>) {
  const { label, hint, error, ...select } = props;
  return (
    <Field label={label} error={error} {...(hint === undefined ? {} : { hint })}>
      {(attributes) => <Select {...attributes} {...select} />}
    </Field>
  );
}

/** Texts of a select by id. @param none text of the choice of no record */
export function optionsOf(records: readonly { id: string; name: string }[], none?: string): Record<string, string> {
  const named = Object.fromEntries(records.map(({ id, name }) => [id, visibleText(name)]));
  return none === undefined ? named : { '': none, ...named };
}

interface CheckProps {
  label: string;
  value: boolean;
  onChange: (checked: boolean) => void;
}

/** A box to tick. */
export function Check({ label, value, onChange }: CheckProps) {
  return (
    <label className={css.check}>
      <input type="checkbox" checked={value} onChange={({ target }) => onChange(target.checked)} />
      <span>{label}</span>
    </label>
  );
}
