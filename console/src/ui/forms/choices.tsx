// A choice among few values, as radio buttons in boxes.
import { useId } from 'react';
import css from './choices.module.css';

interface ChoicesProps<T extends string> {
  legend: string;
  value: T;
  choices: readonly { value: T; label: string; detail?: readonly string[] }[];
  onChange: (value: T) => void;
}

export function Choices<T extends string>({ legend, value, choices, onChange }: ChoicesProps<T>) {
  const name = useId();
  return (
    <fieldset className={css.choices}>
      <legend>{legend}</legend>
      <div className={css.boxes}>
        {choices.map((choice) => (
          <label key={choice.value} className={css.box}>
            <input
              type="radio"
              name={name}
              value={choice.value}
              checked={choice.value === value}
              onChange={() => onChange(choice.value)}
            />
            <span className={css.text}>
              <span className={css.label}>{choice.label}</span>
              {choice.detail?.map((line) => (
                <span key={line} className={css.detail}>
                  {line}
                </span>
              ))}
            </span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}
