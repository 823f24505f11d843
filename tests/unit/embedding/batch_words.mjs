// Says what a signer reads of a batch before the password.
//
//   node batch_words.mjs FOLDER SCENE
//
// FOLDER: the page's modules. The answer is one line of JSON, in English.

const [folder, scene] = process.argv.slice(2);
const { consent, whatToDo } = await import(`file://${folder}/batch_steps.js`);

const SCENES = {
  consent: () => ({
    oneUnopened: consent(1, 3, 0),
    one: consent(1, 1, 1),
    noneOpened: consent(3, 3, 0),
    someOpened: consent(3, 3, 2),
  }),
  whatToDo: () => {
    const one = { unread: 0, pending: 1 };
    return {
      oneOfNone: whatToDo(one, "ACME", "ninguna", false),
      oneOutsideTheSample: whatToDo(one, "ACME", "muestra", false),
      oneOpened: whatToDo(one, "ACME", "ninguna", true),
      oneDemanded: whatToDo({ unread: 1, pending: 1 }, "ACME", "todas", false),
      more: whatToDo({ unread: 0, pending: 2 }, "ACME", "ninguna", false),
    };
  },
};

console.log(JSON.stringify(SCENES[scene]()));
