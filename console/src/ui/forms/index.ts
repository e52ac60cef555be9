// Parts of forms, for one import.
export { CallButton } from './call-button.tsx';
export { Choices } from './choices.tsx';
export { DialogForm } from './dialog-form.tsx';
export { Check, Field, optionsOf, Select, SelectField, TextField } from './field.tsx';
export { useCall, useForm } from './form.ts';
export { InlineForm } from './inline-form.tsx';
