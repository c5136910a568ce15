/** Emoji names to characters; names that are not here are shown as they are written. */

const TABLE = `+1 👍|thumbsup 👍|-1 👎|thumbsdown 👎|ok_hand 👌|wave 👋|clap 👏|pray 🙏|muscle 💪|eyes 👀|eye 👁|tada 🎉|confetti_ball 🎊
sparkles ✨|star ⭐|star2 🌟|fire 🔥|boom 💥|zap ⚡|heart ❤️|broken_heart 💔|green_heart 💚|yellow_heart 💛|blue_heart 💙|purple_heart 💜|100 💯
white_check_mark ✅|heavy_check_mark ✔️|ballot_box_with_check ☑️|x ❌|heavy_multiplication_x ✖️|negative_squared_cross_mark ❎|no_entry ⛔
no_entry_sign 🚫|octagonal_sign 🛑|stop_sign 🛑|warning ⚠️|question ❓|grey_question ❔|exclamation ❗|grey_exclamation ❕|bangbang ‼️|interrobang ⁉️
information_source ℹ️|hourglass ⌛|hourglass_flowing_sand ⏳|watch ⌚|stopwatch ⏱️|timer_clock ⏲️|alarm_clock ⏰|clock1 🕐|clock12 🕛|lock 🔒|unlock 🔓
key 🔑|closed_lock_with_key 🔐|shield 🛡️|mag 🔍|mag_right 🔎|bell 🔔|no_bell 🔕|mega 📣|loudspeaker 📢|speech_balloon 💬|thought_balloon 💭|memo 📝
pencil ✏️|pencil2 ✏️|page_facing_up 📄|clipboard 📋|receipt 🧾|ticket 🎫|admission_tickets 🎟️|label 🏷️|bookmark 🔖|link 🔗|paperclip 📎|pushpin 📌
round_pushpin 📍|package 📦|truck 🚚|airplane ✈️|rocket 🚀|ship 🚢|mailbox 📫|email ✉️|envelope ✉️|inbox_tray 📥|outbox_tray 📤|moneybag 💰
money_with_wings 💸|credit_card 💳|dollar 💵|pound 💷|euro 💶|yen 💴|bank 🏦|chart_with_upwards_trend 📈|chart_with_downwards_trend 📉|bar_chart 📊
calendar 📅|date 📆|robot_face 🤖|ghost 👻|smile 😄|smiley 😃|grinning 😀|grin 😁|joy 😂|laughing 😆|wink 😉|blush 😊|slightly_smiling_face 🙂
upside_down_face 🙃|thinking_face 🤔|neutral_face 😐|confused 😕|disappointed 😞|worried 😟|cry 😢|sob 😭|angry 😠|rage 😡|scream 😱|flushed 😳
sweat 😓|sweat_smile 😅|sunglasses 😎|nerd_face 🤓|zzz 💤|raised_hands 🙌|raised_hand ✋|point_up ☝️|point_down 👇|point_left 👈|point_right 👉
arrow_up ⬆️|arrow_down ⬇️|arrow_left ⬅️|arrow_right ➡️|arrows_counterclockwise 🔄|repeat 🔁|recycle ♻️|red_circle 🔴|large_blue_circle 🔵
large_green_circle 🟢|large_yellow_circle 🟡|large_orange_circle 🟠|white_circle ⚪|black_circle ⚫|double_vertical_bar ⏸️|black_square_for_stop ⏹️
arrow_forward ▶️|checkered_flag 🏁|triangular_flag_on_post 🚩|gear ⚙️|wrench 🔧|hammer 🔨|hammer_and_wrench 🛠️|bug 🐛|beetle 🐞|construction 🚧
rotating_light 🚨|ambulance 🚑|sos 🆘|ice_cube 🧊|snowflake ❄️|scales ⚖️|seedling 🌱|file_folder 📁|chart 💹|new 🆕|ok 🆗|up 🆙`;

const BY_NAME = new Map(
  TABLE.split(/[|\n]/u).map((entry) => /** @type {[string, string]} */ (entry.split(" ", 2))),
);

/** The character of a name without colons (a skin tone is left out), or undefined. @param {string} name */
export function emojiChar(name) {
  return BY_NAME.get(name.replace(/::skin-tone-\d$/u, ""));
}

/** Offered when a person reacts. */
export const QUICK_REACTIONS = ["+1", "white_check_mark", "eyes", "heart", "tada", "question"];
