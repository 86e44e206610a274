"""Own-written prompt templates for the data that the target makes itself: prose, code, chat, extraction, edits.

Seeded; none of them is a prompt that redline measures with (`redline.workload`), which is what is held out.
"""

import random
from typing import Final

_PERSON: Final = (
    "a baker|a beekeeper|a bus driver|a carpenter|a violin teacher|a retired judge|a ferry captain|a night nurse|a young "
    "astronomer|a potter|a translator|a postman|a chess player|a shepherd|a librarian|an old fisherman|a glassblower|a "
    "street musician|a mountain guide|a map maker|a botanist|a tailor|a radio host|a school cook|a bridge engineer|a puppet "
    "maker|a long-distance runner|a detective|a mathematician|a farmer|a king|a robot|a dragon|a photographer|a dentist|a "
    "chemist|a poet|a plumber|two sisters|a pilot|a museum guard|a firefighter|a gardener's apprentice|a tea merchant"
).split("|")
_PLACE: Final = (
    "a harbour town|a desert village|an island|a railway station|a forest|a large hospital|a castle|a research station in "
    "the Arctic|a small theatre|a factory|an airport|a school|a cave|a vineyard|a space station|a hotel in winter|a bazaar|a "
    "swamp|a flooded valley|a rooftop|an abandoned mine|a monastery|a bakery at dawn|a canal boat|a suburb|a prairie|a cliff"
).split("|")
_EVENT: Final = (
    "finds a letter that was never sent|loses a key|learns to swim|must choose between two jobs|hears a strange sound every "
    "night|keeps a secret for forty years|meets an old rival|builds a machine out of scrap|gets lost in the fog|has to "
    "teach a class for one day|discovers a hidden room|wins a prize by mistake|receives a visitor from far away|saves a "
    "wounded bird|is asked to tell the truth|prepares for a great storm|tries to fix a broken friendship|forgets a name"
).split("|")
_SUBJECT: Final = (
    "volcanoes|the water cycle|electric cars|honey bees|the Roman Empire|vaccines|black holes|coffee|the history of money|"
    "photosynthesis|earthquakes|the printing press|jazz|chess|glaciers|democracy|the human heart|satellites|whales|the Silk "
    "Road|antibiotics|recycling|solar panels|the French Revolution|dreams|bicycles|artificial intelligence|coral reefs|the "
    "moon landing|bridges|chocolate|time zones|DNA|the Great Wall of China|tides|salt|the internet|rainforests|magnets|"
    "penguins|the Olympic Games|clouds|gravity|microscopes|glass|tea|dinosaurs|sleep|the brain|steam engines|maps|music "
    "theory|migration of birds|the immune system|plastic|deserts|computers|batteries|inflation in ancient times|lightning"
).split("|")
_LANGUAGE: Final = "Python|Python|Python|Python|JavaScript|JavaScript|C|C++|Java|Go|Rust|TypeScript|Bash|SQL|Ruby".split("|")
_TASK: Final = (
    "sorts a list of numbers|finds the largest value in an array|counts the words in a text|computes the factorial of a "
    "number|merges two sorted lists|checks whether a number is prime|converts Celsius to Fahrenheit|reads a JSON file and "
    "prints its keys|removes all vowels from a string|finds the most common letter in a word|computes the average of a list|"
    "implements binary search|implements a queue|implements a linked list with insert and delete|validates an email address|"
    "calculates the area of a circle|flattens a nested list|finds common elements of two lists|generates a random password|"
    "computes the greatest common divisor|transposes a matrix|counts how often each word occurs|rotates an array by k places|"
    "formats a date as year-month-day|parses a URL into its parts|renames all files in a directory|downloads a web page|"
    "writes a list of dictionaries to a file|computes compound interest|finds the second smallest number|capitalises every "
    "word|draws a triangle of stars|converts a number to binary|simulates rolling two dice|implements a bank account with "
    "deposit and withdraw|splits a list into chunks|measures how long a function takes|caches the results of a function|"
    "checks whether brackets are balanced|finds the longest word in a sentence|adds two matrices|implements bubble sort|"
    "implements a binary tree with insert and search|solves the quadratic equation|encrypts a text with a Caesar cipher|"
    "computes the median of a list|reads numbers until the user types stop|prints a multiplication table|builds a simple "
    "calculator|finds all pairs that add up to a target|removes empty lines from a file|plays rock, paper, scissors"
).split("|")
_STYLE: Final = (
    "|| Explain how it works.| Add comments.| Show an example of its use.| Include error handling.| Write tests too.| Keep it "
    "short.| Use clear names.| Then explain its running time."
).split("|")
_ASK: Final = (
    "What is the capital of {country}?|How do I clean {thing}?|What is the difference between {a} and {b}?|Give me tips for "
    "{activity}.|How does {topic} work?|Why is {topic} important?|I feel tired when {activity}. What can I do?|Can you "
    "recommend a plan for {activity}?|How much does {thing} usually cost?|What are the pros and cons of {thing}?|Explain "
    "{topic} to a child.|What should I know before {activity}?|Give me five ideas for {activity}.|Who invented {thing}?|How can "
    "I save money on {thing}?|Is {activity} good for my health?|Write a short email to my {who} about {thing}.|Help me write a "
    "message to my {who} because I am late for {activity}.|What are three facts about {country}?|List the steps for "
    "{activity}.|Make a checklist for {activity}.|Write a poem about {topic}.|What are common mistakes in {activity}?|Compare "
    "{a} with {b} in a few sentences.|Suggest a name for {thing}.|Hello! Can you tell me about {topic}?|How long does it take to "
    "learn {activity}?|What does {topic} mean for my {who}?|Tell me a joke about {thing}.|Plan a weekend in {country}."
).split("|")
_FILL: Final[dict[str, list[str]]] = {
    "country": "France|Japan|Brazil|Kenya|Canada|Norway|India|Peru|Egypt|Greece|Vietnam|Mexico|Poland|Turkey|Chile|Spain|Iceland|Morocco|Australia|Portugal".split(
        "|"
    ),
    "thing": "a leather sofa|a wool coat|a laptop|a kitchen knife|a coffee machine|a bicycle chain|a used car|a tent|a guitar|a garden shed|a washing machine|a wooden table|a dog|a cat|a smartphone|an umbrella|a camera|a carpet|a fish tank|a pair of boots|a telescope|a new bakery|a small company".split(
        "|"
    ),
    "activity": "running a marathon|baking sourdough bread|painting a room|learning Spanish|studying for an exam|moving to a new city|planting tomatoes|camping with children|public speaking|cooking for twenty guests|working from home|buying a house|writing a novel|training a puppy|saving for retirement|meditating|making friends|building a website|swimming|playing the drums|knitting a scarf|hosting a party|travelling alone".split(
        "|"
    ),
    "who": "boss|teacher|landlord|sister|best friend|colleague|grandmother|customer|doctor|coach".split("|"),
    "a": "tea|a laptop|a virus|weather|a novel|a bank loan|a lake|stocks|a frog|baking soda|a comet|TCP".split("|"),
    "b": "coffee|a tablet|a bacterium|climate|a short story|a credit card|a sea|bonds|a toad|baking powder|an asteroid|UDP".split(
        "|"
    ),
    "topic": _SUBJECT,
}
_NAME: Final = "Anna|Boris|Clara|David|Elena|Felix|Gina|Hugo|Iris|Jonas|Karin|Leo|Marta|Nils|Olga|Paul|Rosa|Sven|Tara|Victor|Wanda|Yusuf".split(
    "|"
)
_SURNAME: Final = "Adler|Berg|Costa|Dorn|Evans|Fischer|Grant|Hale|Ivanov|Jensen|Klein|Lopez|Moreau|Novak|Olsen|Price|Quinn|Rossi|Stone|Turner|Weber|Young".split(
    "|"
)
_TOWN: Final = "Oakridge|Westport|Brackenfield|Lindau|Stonehaven|Riverton|Ashby|Fairview|Kingsford|Maplewood|Dunmore|Graypool".split(
    "|"
)
_GOODS: Final = "apples|nails|candles|blankets|bottles|chairs|lamps|ropes|plates|shirts|books|pencils|barrels|tiles|boots|mirrors".split(
    "|"
)
_NOUN: Final = "dog|ship|teacher|window|road|winter|garden|bell|horse|letter|fire|roof|lake|song|coat|tower|wall|fox|lamp|wheel|bird|door|stone|mill|boy|queen|wagon|tree|cloud|soldier".split(
    "|"
)
_VERB: Final = "carried|followed|watched|opened|found|painted|forgot|repaired|crossed|heard|left|reached|moved|sold|guarded|counted|pushed|covered|answered|visited".split(
    "|"
)
_ADJECTIVE: Final = "old|quiet|broken|red|narrow|heavy|strange|bright|cold|empty|tired|golden|small|wet|distant|gentle|dark|tall|wooden|early".split(
    "|"
)
_REST: Final = "before the rain|after supper|near the river|without a word|in the early morning|for three days|on the way home|behind the church|with great care|until midnight|because nobody else would|as the sun went down".split(
    "|"
)


def _sentence(rng: random.Random) -> str:
    c = rng.choice
    return c(
        (
            f"The {c(_ADJECTIVE)} {c(_NOUN)} {c(_VERB)} the {c(_NOUN)} {c(_REST)}.",
            f"{c(_NAME)} {c(_VERB)} a {c(_ADJECTIVE)} {c(_NOUN)} {c(_REST)}.",
            f"In {c(_TOWN)} the {c(_NOUN)} is {c(_ADJECTIVE)} and the {c(_NOUN)} is {c(_ADJECTIVE)}.",
            f"{c(_NAME)} {c(_SURNAME)} bought {rng.randint(2, 90)} {c(_GOODS)} in {c(_TOWN)}.",
            f"There were {rng.randint(2, 60)} {c(_GOODS)} on the {c(_NOUN)}, and the {c(_NOUN)} {c(_VERB)} them {c(_REST)}.",
        )
    )


def _text(rng: random.Random) -> str:
    form = rng.randrange(5)
    if form == 0:
        return " ".join(_sentence(rng) for _ in range(rng.randint(3, 7)))
    if form == 1:
        return "\n".join(f"{i + 1}. {_sentence(rng)}" for i in range(rng.randint(3, 6)))
    if form == 2:
        keys = rng.sample("host port user level color size path mode limit retries theme region cache timeout owner".split(), 6)
        values = [rng.choice((str(rng.randint(1, 9999)), f'"{rng.choice(_NOUN)}"', "true", "false")) for _ in keys]
        return f"[{rng.choice(_NOUN)}]\n" + "\n".join(f"{k} = {v}" for k, v in zip(keys, values, strict=True))
    if form == 3:
        return "\n".join(
            f"- {rng.choice(_GOODS)}: {rng.randint(1, 99)} ({rng.choice(_ADJECTIVE)})" for _ in range(rng.randint(4, 8))
        )
    return f"Dear {rng.choice(_NAME)},\n\n" + " ".join(_sentence(rng) for _ in range(3)) + f"\n\nYours, {rng.choice(_NAME)}"


def _prose(rng: random.Random) -> str:
    c = rng.choice
    return c(
        (
            f"Write a {c(('short ', '', 'funny ', 'sad ', 'long '))}story about {c(_PERSON)} who {c(_EVENT)} in {c(_PLACE)}.",
            f"Write {c(('an essay', 'a paragraph', 'an article', 'a blog post', 'a speech'))} about {c(_SUBJECT)}.",
            f"Describe {c(_PLACE)} through the eyes of {c(_PERSON)}.",
            f"Explain {c(('how', 'why', 'when'))} {c(_SUBJECT)} changed the world.",
            f"Write {c(('a letter', 'a diary entry', 'a monologue'))} by {c(_PERSON)} from {c(_PLACE)}.",
            f"Tell me about {c(_SUBJECT)} and {c(_SUBJECT)}.",
            f"Describe in detail how {c(_PERSON)} spends a day in {c(_PLACE)}.",
        )
    )


def _code(rng: random.Random) -> str:
    c = rng.choice
    language, task, style = c(_LANGUAGE), c(_TASK), c(_STYLE)
    return c(
        (
            f"Write a {language} function that {task}.{style}",
            f"Write a {language} program that {task}.{style}",
            f"Create a {language} script which {task}.{style}",
            f"How do I write a {language} function that {task}?",
            f"In {language}, write code that {task} and then code that {c(_TASK)}.{style}",
            f"Write a class in {language} that {task}.{style}",
        )
    )


def _chat(rng: random.Random) -> str:
    text = rng.choice(_ASK)
    for name, values in _FILL.items():
        text = text.replace("{" + name + "}", rng.choice(values))
    return text


def _structured(rng: random.Random) -> str:
    c = rng.choice
    rows = [f"{c(_NAME)} {c(_SURNAME)}, {rng.randint(18, 80)}, {c(_TOWN)}" for _ in range(rng.randint(2, 6))]
    lines = "\n".join(rows)
    bought = " ".join(f"{c(_NAME)} bought {rng.randint(1, 50)} {c(_GOODS)}." for _ in range(rng.randint(2, 6)))
    return c(
        (
            f'Convert these lines to a JSON list of objects with the keys "name", "age" and "town".\n\n{lines}',
            f"Write this table as CSV with a header line:\n\n{lines}",
            f"Extract who bought what from this text as JSON.\n\n{bought}",
            f"List all numbers in this text as a JSON array.\n\n{bought}",
            f"Write a JSON object that describes {c(_PERSON)}: name, age, town, three hobbies.",
            f"Make a Markdown table of these people:\n\n{lines}",
            f"Write a YAML file for a service called {c(_NOUN)} with port {rng.randint(1000, 9999)}, {rng.randint(1, 9)} "
            "replicas and logging.",
            f"Write this as XML:\n\n{lines}",
            f"Write a JSON array of {rng.randint(3, 8)} {c(_GOODS)} with id, price and colour.",
        )
    )


def _edit(rng: random.Random) -> str:
    ask = rng.choice(
        (
            "Repeat the following text:",
            "Repeat the following text:",
            "Copy this text exactly:",
            "Repeat this word for word.",
            "Correct the spelling of this text and print it again:",
            "Print the following lines again:",
            "Rewrite this text in the present tense:",
            f"Replace the word {rng.choice(_NOUN)} by {rng.choice(_NOUN)} in this text:",
        )
    )
    return f"{ask}\n\n{_text(rng)}"


CLASSES: Final = {"prose": _prose, "code": _code, "chat": _chat, "structured": _structured, "edit": _edit}
_SHARES: Final = {"prose": 0.28, "code": 0.30, "chat": 0.22, "structured": 0.10, "edit": 0.10}


def training_prompts(seed: int, count: int) -> list[str]:
    """Return prompts drawn by seed."""
    rng = random.Random(f"drafter/{seed}")  # noqa: S311 -- reproducible, not secret
    kinds = rng.choices(list(_SHARES), list(_SHARES.values()), k=count)
    return [CLASSES[kind](rng) for kind in kinds]
